package hold_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// host is a container's command, beside which preStop hooks run: with addresses, beside a
// child that serves there. Lines on standard input start a hook ("hold" or "watch" with
// flags, see startHook), or are "send SIGNAL" to the hook, "crash" of the child, or "exit N".
// host prints each line of the hook after "hook: ", and then the hook's exit code.
func host(args []string) {
	var server *exec.Cmd
	if len(args) > 0 {
		words := box.Helper("catch", args...)
		server = exec.Command(words[0], words[1:]...)
		testutil.Must(server.StdinPipe())
		server.Stdout = os.Stdout
		box.Die(server.Start())
	} else {
		fmt.Println("ready")
	}
	var hook *exec.Cmd
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "exit":
			os.Exit(testutil.Must(strconv.Atoi(words[1])))
		case "send":
			box.Die(hook.Process.Signal(syscall.Signal(testutil.Must(sig.Parse(words[1])))))
		case "crash":
			server.Process.Kill()
			server.Wait()
		default:
			hook = startHook(words)
		}
	}
	os.Exit(98)
}

// startHook starts a hook. Words before the subcommand say how: "as=UID" as another user,
// "stuck" with a full pipe as standard error, "same" with the host's standard error, and
// redirections and variables as in a shell.
func startHook(words []string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("BINARY"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LAMEDUCK_LOG_FORMAT=json"}
	r, w, err := os.Pipe()
	box.Die(err)
	cmd.Stdout, cmd.Stderr = w, w
	redirect := ""
how:
	for i, word := range words {
		name, value, isVariable := strings.Cut(word, "=")
		switch {
		case name == "as":
			runAs(cmd, testutil.Must(strconv.Atoi(value)))
		case name == "stuck":
			cmd.Stderr = fullPipe()
		case name == "same":
			cmd.Stderr = os.Stderr
		case strings.ContainsAny(name, "<>"):
			redirect += " " + word
		case isVariable && !strings.HasPrefix(word, "-"):
			cmd.Env = append(cmd.Env, word)
		default:
			cmd.Args = append(cmd.Args, words[i:]...)
			break how
		}
	}
	if redirect != "" {
		cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@"` + redirect, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	start := time.Now()
	box.Die(cmd.Start())
	w.Close()
	go func() {
		io.Copy(hookLines{}, r)
		cmd.Wait()
		fmt.Printf("hook exited %d after %d ms\n", cmd.ProcessState.ExitCode(), time.Since(start).Milliseconds())
	}()
	return cmd
}

// hookLines prints what is written, "hook: " before each line.
type hookLines struct{}

func (hookLines) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		fmt.Print("hook: ", line)
	}
	return len(p), nil
}

// runAs makes cmd run lameduck as another user, from a place where any user can execute programs.
func runAs(cmd *exec.Cmd, uid int) {
	cmd.Path = "/mnt/lameduck"
	box.Die(unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"))
	box.Die(os.WriteFile(cmd.Path, testutil.Must(os.ReadFile(os.Getenv("BINARY"))), 0o755))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}

// unread is the reading end of a full pipe: a variable keeps the file open.
var unread *os.File

// fullPipe returns the writing end of a full pipe without a reader at work.
func fullPipe() *os.File {
	r, w, err := os.Pipe()
	box.Die(err)
	unread = r
	fd := int(w.Fd())
	unix.SetNonblock(fd, true)
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1))
	}
	unix.SetNonblock(fd, false)
	return w
}

// hookHost is a container with the host helper.
type hookHost struct{ *box.Box }

// startHost starts a container, in a network of its own, whose PID 1 is the command of the
// words before, or the host helper without such words. A server serves at the addresses.
func startHost(t *testing.T, s box.Setup, before []string, addresses ...string) hookHost {
	t.Helper()
	t.Parallel()
	s.Network = box.NewNetwork(t)
	s.Env = append(s.Env, "BINARY="+box.Binary)
	b := s.Start(t, append(before, box.Helper("host", addresses...)...)...)
	b.Ready()
	return hookHost{b}
}

// wantHook waits for the end of the hook, wants this exit code, at this time or up to Slack
// later, ends the container, and wants the reason for the end of the hold on PID 1's standard
// error, where a hook writes too.
func (h hookHost) wantHook(code int, at time.Duration, reason string) {
	h.T.Helper()
	var got, ms int
	fmt.Sscanf(h.Out.Wait("hook exited").Text, "hook exited %d after %d ms", &got, &ms)
	if took := time.Duration(ms) * time.Millisecond; got != code || took < at || took > at+box.Slack {
		h.T.Errorf("the hook exited with %d after %v, want %d after %v", got, took, code, at)
	}
	h.Send("exit 0")
	h.WantExit(0)
	if reason != "" && h.Report().Ended != reason {
		h.T.Errorf("stderr %q, want a hold until %s", h.Messages(), reason)
	}
}
