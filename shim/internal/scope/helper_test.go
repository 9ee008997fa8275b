package scope

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// The programs of the tests are the test binary itself, as "helper NAME ARG...". Each
// prints a line when ready, and stays while standard input is open.
func helper(name string, args []string) {
	switch name {
	case "hold": // keeps the inherited descriptors
		fmt.Println("ready")
	case "nest": // a child keeps the descriptors
		cmd := helperCommand("hold")
		cmd.ExtraFiles = []*os.File{os.NewFile(3, "listener")}
		child(cmd)
		unix.Close(3)
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
	case "docker": // root as in Docker: descriptors of other users can be listed, not read
		runtime.LockOSThread()
		die(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_PTRACE, 0, 0, 0))
		die(syscall.Exec("/proc/self/exe", []string{"scope.test", "helper", "docker-inside"}, os.Environ()))
	case "docker-inside":
		cmd := helperCommand("hold")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		child(cmd)
		look(Query{})
	case "group":
		group(args[0])
	case "listen":
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		die(err)
		fmt.Println(l.Addr().(*net.TCPAddr).Port)
		stay()
		l.Close()
		os.Exit(0)
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
	UDP      Ports
	Unix     []string
	Complete bool
	Why      string
	None     bool
	Groups   []uint64
	Listens  []int // ports of the helper and its child
}

// look reads the listeners from /proc/net and prints the scope in a line.
func look(q Query) {
	sockets, err := procfs.Root("").TCP(nil)
	q.Listeners, q.Err = sockets, err
	q.WholePIDNamespace = q.WholePIDNamespace || os.Getpid() == 1
	tell(Gather(q), nil)
}

func tell(f Facts, listens []int) {
	s := Decide(f)
	out := seen{s.Method.String(), s.Ports, s.UDP, s.Unix, s.Complete, "", s.NoListener(), f.Cgroups.Below, listens}
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

// child starts a helper's helper and reads its line. The child ends with its parent, or by
// end.
func child(cmd *exec.Cmd) (line string, end func()) {
	in, err := cmd.StdinPipe()
	die(err)
	out, err := cmd.StdoutPipe()
	die(err)
	die(cmd.Start())
	said := make([]byte, 4096)
	n, err := out.Read(said)
	die(err)
	return string(said[:n]), func() {
		in.Close()
		die(cmd.Wait())
	}
}

// group runs in a control group, the directory dir: group listens, a child in a group below
// listens too, and group prints the scope by the control group alone.
func group(dir string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	die(err)
	sub, err := unix.Open(filepath.Join(dir, "sub"), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	die(err)
	cmd := helperCommand("listen")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: sub}
	line, end := child(cmd)
	theirs, err := strconv.Atoi(strings.TrimSpace(line))
	die(err)
	mine := l.Addr().(*net.TCPAddr).Port
	conn, err := sockdiag.Open()
	die(err)
	q := Query{}
	die(conn.Dump(sockdiag.Query{States: sockdiag.In(tcp.Listen)}, func(s *tcp.Socket) {
		q.Listeners = append(q.Listeners, *s)
	}))
	for _, s := range q.Listeners {
		if int(s.Local.Port()) == mine {
			q.Cgroup = s.Cgroup
		}
	}
	f := Gather(q)
	f.Held = Sockets{Err: fmt.Errorf("not looked at")}
	f.Shim = nil // the listener above stands for the command's
	if f.Cgroups.Err != nil {
		die(f.Cgroups.Err)
	}
	tell(f, []int{mine, theirs})
	stay()
	end() // before the test removes the groups
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
	line, _ := child(cmd)
	fmt.Print(line)
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
