package scope

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// The programs of the tests are the test binary itself, as "helper NAME ARG...". Each
// prints a line when ready, and stays while standard input is open.
func helper(name string, args []string) {
	switch name {
	case "hold": // keeps the inherited descriptors
		fmt.Println("ready")
	case "look": // at the whole PID namespace, or else at the descendants
		look(Query{WholePIDNamespace: len(args) > 0 && args[0] == "everyone"})
	case "hidden": // PID 1, with a proc file system with hidepid
		die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		die(unix.Mount("proc", "/proc", "proc", 0, "hidepid=2"))
		look(Query{})
	case "first": // PID 1, with a listener; a child looks, or PID 1
		first(args)
	case "drop": // the parent becomes another user than the child
		child(helperCommand("hold"))
		die(syscall.Setgroups(nil))
		die(syscall.Setgid(65534))
		die(syscall.Setuid(65534))
		look(Query{})
	default:
		die(fmt.Errorf("no helper %q", name))
	}
	stay()
	os.Exit(0)
}

func stay() { io.Copy(io.Discard, os.Stdin) }

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(99)
	}
}

// seen is the scope as a helper prints it.
type seen struct {
	Method   string
	Ports    Ports
	Complete bool
	Why      string
	None     bool
}

// look reads the listeners from /proc/net and prints the scope in a line.
func look(q Query) {
	sockets, err := procfs.Root("").TCP(nil)
	q.Listeners, q.Err = sockets, err
	q.WholePIDNamespace = q.WholePIDNamespace || os.Getpid() == 1
	s := Decide(Gather(q))
	out := seen{s.Method.String(), s.Ports, s.Complete, "", s.NoListener()}
	if s.Why != nil {
		out.Why = s.Why.Error()
	}
	die(json.NewEncoder(os.Stdout).Encode(out))
}

func helperCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{"helper"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	return cmd
}

// child starts a helper's helper, which ends with its parent, and reads its line.
func child(cmd *exec.Cmd) (line string) {
	_, err := cmd.StdinPipe()
	die(err)
	out, err := cmd.StdoutPipe()
	die(err)
	die(cmd.Start())
	said := make([]byte, 4096)
	n, err := out.Read(said)
	die(err)
	return string(said[:n])
}

// first is PID 1 of a namespace and has descriptor 3.
func first(args []string) {
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	die(unix.Mount("proc", "/proc", "proc", 0, ""))
	uid, rest := args[0], args[1:]
	if uid == "self" {
		cmd := helperCommand("hold")
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "listener")}
		child(cmd)
		unix.Close(3)
		look(Query{})
		return
	}
	unix.CloseOnExec(3)
	cmd := helperCommand(append([]string{"look"}, rest...)...)
	id, err := strconv.Atoi(uid)
	die(err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	fmt.Print(child(cmd))
}

// start runs a helper for the test and reads its line.
func start(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip("cannot start it: ", err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("helper %v: %v", cmd.Args[2:], err)
		}
	})
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("helper %v: %v", cmd.Args[2:], err)
	}
	return string(line[:n])
}

// startSeen runs a helper that prints its scope.
func startSeen(t *testing.T, cmd *exec.Cmd) (s seen) {
	t.Helper()
	line := start(t, cmd)
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return s
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "helper" {
		helper(os.Args[2], os.Args[3:])
	}
	netns.Main(m, 0)
}
