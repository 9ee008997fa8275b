package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// host is a container's command, beside which preStop hooks run: a server, on a port that
// host prints, or with a server as a child, or without a server. Lines on standard input
// start a hook ("hold" or "watch" with flags, see startHook), or are "send SIGNAL" to the
// hook, "listen" for another server, "socket PATH", "crash" of the child, or "exit N". host
// prints each line of the hook after "hook: ", and the hook's exit code.
func host(args []string) {
	var server *exec.Cmd
	switch args[0] {
	case "server":
		listenOnLoopback()
	case "child":
		server = exec.Command("/proc/self/exe", "helper", "serve")
		server.Stdin = testutil.Must(unixPipe())
		server.Stdout = os.Stdout
		die(server.Start())
	}
	var hook *exec.Cmd
	fmt.Println("host ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		switch words[0] {
		case "exit":
			obey(in.Text())
		case "send":
			s, err := sig.Parse(words[1])
			die(err)
			die(hook.Process.Signal(syscall.Signal(s)))
		case "listen":
			listenOnLoopback()
		case "socket":
			keptFiles = append(keptFiles, testutil.Must(unixSocket(testutil.Must(strconv.Unquote(words[1])))))
			fmt.Println("socket listens")
		case "crash":
			server.Process.Kill()
			server.Wait()
		default:
			hook = startHook(words)
		}
	}
	os.Exit(98)
}

// unixSocket returns a socket that listens on a path, or on an abstract name after "@".
func unixSocket(path string) (*os.File, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	return listener.(*net.UnixListener).File()
}

// unixPipe returns the reading end of a pipe without any data.
func unixPipe() (*os.File, error) {
	r, w, err := os.Pipe()
	keptFiles = append(keptFiles, w)
	return r, err
}

// keptFiles stay open: a variable keeps the garbage collector from closing the files.
var keptFiles []*os.File

// listenOnLoopback starts a server, and prints the server's port.
func listenOnLoopback() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	die(err)
	go answer(listener)
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
}

// startHook starts a hook. Words before the subcommand say how: "as=UID" as another user,
// "stuck" with a full pipe as standard error, "same" with the host's standard error, and
// redirections and variables as in a shell.
func startHook(words []string) *exec.Cmd {
	cmd := exec.Command(os.Getenv("BINARY"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	r, w, err := os.Pipe()
	die(err)
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
	die(cmd.Start())
	w.Close()
	go printHook(cmd, r, start)
	return cmd
}

// runAs makes cmd run lameduck as another user, from a place where any user can execute programs.
func runAs(cmd *exec.Cmd, uid int) {
	cmd.Path = "/mnt/lameduck"
	die(unix.Mount("tmpfs", "/mnt", "tmpfs", 0, "mode=755"))
	die(os.WriteFile(cmd.Path, nil, 0o755))
	die(unix.Mount(os.Getenv("BINARY"), cmd.Path, "", unix.MS_BIND, ""))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
}

// fullPipe returns the writing end of a full pipe without a reader at work.
func fullPipe() *os.File {
	r, w, err := os.Pipe()
	die(err)
	keptFiles = append(keptFiles, r)
	fd := int(w.Fd())
	unix.SetNonblock(fd, true)
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1))
	}
	unix.SetNonblock(fd, false)
	return w
}

// printHook prints the lines of a hook, and then the exit code and the times.
func printHook(cmd *exec.Cmd, output io.Reader, start time.Time) {
	ended := make(chan time.Duration, 1)
	go func() {
		cmd.Wait()
		ended <- time.Since(start)
	}()
	for in := bufio.NewScanner(output); in.Scan(); {
		fmt.Println("hook:", in.Text())
	}
	took := <-ended
	state := cmd.ProcessState
	fmt.Printf("hook exited %d after %d ms, used %d ms\n", state.ExitCode(), took.Milliseconds(), (state.UserTime() + state.SystemTime()).Milliseconds())
}
