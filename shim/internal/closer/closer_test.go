package closer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// roles are what this program does as a process of its own, by the value of CLOSER_ROLE.
var roles = map[string]func(){
	"seccomp":    func() { testutil.Deny(unix.SYS_PIDFD_GETFD, unix.EPERM); shutDownOwn() },
	"old kernel": func() { testutil.Deny(unix.SYS_PIDFD_GETFD, unix.ENOSYS); shutDownOwn() },
	"search":     search,
	"undumpable": func() {
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
	},
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv("CLOSER_ROLE")]; role != nil {
		role()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process returns a process in a role.
func process(role string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "CLOSER_ROLE="+role)
	return cmd
}

// connection is a connection of ours.
type connection struct {
	client net.Conn
	server *os.File
	socket tcp.Socket
}

func connect() connection {
	l := testutil.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	client := testutil.Must(net.Dial("tcp", l.Addr().String()))
	accepted := testutil.Must(l.Accept())
	defer accepted.Close()
	server := testutil.Must(accepted.(*net.TCPConn).File())
	var stat unix.Stat_t
	unix.Fstat(int(server.Fd()), &stat)
	socket := testutil.Must(sockdiag.ReadSocket(int(server.Fd())))
	socket.Inode = uint32(stat.Ino)
	return connection{client, server, socket}
}

// closer returns a Closer that has just found this holder of the connection.
func (c connection) closer(pid, fd int) *Closer {
	return &Closer{holders: map[uint32]holder{c.socket.Inode: {pid, fd, []int{pid}}}, searchedAt: time.Now()}
}

func always(*tcp.Socket) bool { return true }

// A request that has arrived is still read and answered. No descriptor is kept.
func TestShutDown(t *testing.T) {
	conn := connect()
	io.WriteString(conn.client, "b")
	c := conn.closer(os.Getpid(), int(conn.server.Fd()))
	before := testutil.LowestFree()
	asked, err := c.Ask(&conn.socket, "", always)
	if asked == nil || err != nil || asked.Unread != 1 {
		t.Errorf("asked %+v, error %v", asked, err)
	}
	if after := testutil.LowestFree(); after != before {
		t.Errorf("descriptor %d was free, and is not", before)
	}
	request, _ := io.ReadAll(conn.server)
	io.WriteString(conn.server, "c")
	conn.server.Close()
	answer, _ := io.ReadAll(conn.client)
	if string(request) != "b" || string(answer) != "c" {
		t.Errorf("the server reads %q, the client %q", request, answer)
	}
}

// Nothing happens to a connection that is not idle, or is not the one that is meant. A full table of
// descriptors is no fault.
func TestLeftAlone(t *testing.T) {
	conn := connect()
	pid, fd := os.Getpid(), int(conn.server.Fd())
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	for what, held := range map[string][2]int{
		"busy": {pid, fd}, "another socket": {pid, fd}, "full table": {pid, fd},
		"descriptor gone": {pid, 1 << 20}, "process gone": {1 << 22, fd}, // no process has such a number
	} {
		socket := conn.socket
		switch what {
		case "another socket":
			socket.Cookie++
		case "full table":
			unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max})
		}
		isIdle := func(*tcp.Socket) bool { return what != "busy" }
		asked, err := conn.closer(held[0], held[1]).Ask(&socket, "", isIdle)
		unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
		if asked != nil || err != nil {
			t.Errorf("%s: asked %+v, error %v", what, asked, err)
		}
	}
	io.WriteString(conn.client, "x")
	if n, err := conn.server.Read(make([]byte, 1)); n != 1 {
		t.Errorf("the connection is of no use: %v", err)
	}
}

// scripts are what holders of a connection do.
var scripts = map[string]string{"rest": "echo ready; exec cat", "work": "echo ready; while :; do :; done"}

// A word is written while every process that holds the connection sleeps: one that has work may stand
// between two writes of a frame.
func TestWrite(t *testing.T) {
	for roles, want := range map[string]bool{"rest": true, "work": false, "rest work": false, "work rest": false, "rest rest": true} {
		conn, c := connect(), &Closer{}
		for role := range strings.FieldsSeq(roles) {
			cmd := exec.Command("sh", "-c", scripts[role])
			out := testutil.Must(cmd.StdoutPipe())
			holder := begin(cmd, conn.server)
			defer holder.Wait()
			defer holder.Kill()
			bufio.NewReader(out).ReadString('\n')
		}
		isAsked := func() bool {
			asked, err := c.Ask(&conn.socket, "ours", always)
			return asked != nil && err == nil
		}
		if !want {
			if isAsked() {
				t.Errorf("written beside %s", roles)
			}
			continue
		}
		testutil.Eventually(t, roles, isAsked)
		got := make([]byte, 4)
		if io.ReadFull(conn.client, got); string(got) != "ours" {
			t.Errorf("%s: written %q", roles, got)
		}
	}
}

// TestRests: the process whose descriptor is duplicated has to be seen asleep. Nothing is known of the process 8.
func TestRests(t *testing.T) {
	conn := connect()
	c := Closer{root: procfs.Root(testutil.Files(t, "== 7/task/7/status\nName:\tserver\nState:\tS (sleeping)\n"))}
	for pid, want := range map[int]bool{7: true, 8: false} {
		h := conn.closer(pid, int(conn.server.Fd())).holders[conn.socket.Inode]
		if got := c.rests(h, int(conn.server.Fd()), &conn.socket); got != want {
			t.Errorf("process %d rests: %v", pid, got)
		}
	}
}

// The first part of a frame that the server keeps back (MSG_MORE) is not sent yet.
func TestWriteKeptBack(t *testing.T) {
	conn := connect()
	other := begin(exec.Command("cat"), conn.server)
	defer other.Wait()
	defer other.Kill()
	c := conn.closer(other.Pid, 3)
	testutil.Eventually(t, "the other process sleeps", func() bool { return c.root.IsAsleep(other.Pid) })
	beginFrame := func(*tcp.Socket) bool {
		return unix.Send(int(conn.server.Fd()), []byte("begin"), unix.MSG_MORE) == nil
	}
	asked, err := c.Ask(&conn.socket, "ours", beginFrame)
	if asked != nil || err != nil {
		t.Errorf("written: %+v, error %v", asked, err)
	}
}

// TestRoles runs roles in processes of their own, without privileges.
func TestRoles(t *testing.T) {
	for role, want := range map[string]string{
		"seccomp":    "false the seccomp profile forbids pidfd_getfd(2): allow it, or add the capability SYS_PTRACE\n",
		"old kernel": "false pidfd_getfd(2) is missing: it needs Linux 5.6 and a seccomp profile that knows it, and gVisor has none\n",
		"search": `beside a zombie
nobody's: false <nil>
nobody's: false <nil>
beside a process that is not dumpable
nobody's: false <nil>
open: true <nil>
nobody's: false process N runs as another user, or is not dumpable, or an AppArmor profile forbids it: run all processes as one user without no-new-privileges, or lameduck as root with the capability SYS_PTRACE
`,
	} {
		cmd := process(role)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
			t.Skip("may not become another user: ", err)
		}
		if got := regexp.MustCompile(`process \d+`).ReplaceAllString(string(out), "process N"); got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", role, err, got, want)
		}
	}
}

// shutDownOwn prints why a connection of this process cannot be closed.
func shutDownOwn() {
	conn := connect()
	asked, err := conn.closer(os.Getpid(), int(conn.server.Fd())).Ask(&conn.socket, "", always)
	fmt.Println(asked != nil, err)
}

// search prints what becomes of connections beside processes whose descriptors cannot be read: they
// are no reason for a refusal until a later sample shows a connection again that nobody seems to
// hold. The descriptors of a zombie only seem to be root's.
func search() {
	var c Closer
	shutDown := func(what string, of *tcp.Socket) {
		asked, err := c.Ask(of, "", always)
		fmt.Println(what, asked != nil, err)
	}
	conn, nobodys := connect(), &tcp.Socket{Inode: 1, Cookie: 1}
	begin(exec.Command("cat"), conn.server)
	zombie := begin(exec.Command("true"))
	unix.Waitid(unix.P_PID, zombie.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	fmt.Println("beside a zombie")
	shutDown("nobody's:", nobodys)
	shutDown("nobody's:", nobodys)

	undumpable := process("undumpable")
	out := testutil.Must(undumpable.StdoutPipe())
	begin(undumpable)
	bufio.NewReader(out).ReadString('\n')
	fmt.Println("beside a process that is not dumpable")
	c = Closer{}
	shutDown("nobody's:", nobodys)
	shutDown("open:", &conn.socket)
	shutDown("nobody's:", nobodys)
}

// inputs are the standard inputs of programs: the garbage collector would close them.
var inputs []io.Closer

// begin starts a program, which holds the files, and whose standard input ends with us.
func begin(cmd *exec.Cmd, files ...*os.File) *os.Process {
	inputs = append(inputs, testutil.Must(cmd.StdinPipe()))
	cmd.ExtraFiles = files
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process
}

// TestExplain: who is to blame if the kernel does not say.
func TestExplain(t *testing.T) {
	before := testutil.LowestFree()
	for level, want := range map[string]string{"0": "runs as another user, or is not dumpable", "1": "ptrace_scope is 1"} {
		root := testutil.Files(t, "== sys/kernel/yama/ptrace_scope\n"+level)
		hook := Closer{root: procfs.Root(root), WholePIDNamespace: true}
		if got := hook.explain(7, unix.EPERM).Error(); !strings.Contains(got, want) {
			t.Errorf("level %s: %s", level, got)
		}
	}
	if after := testutil.LowestFree(); after != before {
		t.Errorf("descriptor %d was free, and is not", before)
	}
}

// What another container holds that has joined the PID namespace is left alone.
func TestOtherContainer(t *testing.T) {
	root := testutil.Files(t, strings.ReplaceAll(`
== self
->OWN
== OWN/cgroup
0::/
== OWN/fd/
== 7/cgroup
0::/below
== 7/fd/3
->socket:[7]
== 8/cgroup
0::/../other
== 8/fd/3
->socket:[8]`, "OWN", strconv.Itoa(os.Getpid())))
	c := Closer{WholePIDNamespace: true, root: procfs.Root(root)}
	c.search()
	if got := fmt.Sprint(c.holders); got != "map[7:{7 3 [7]}]" {
		t.Errorf("the holders are %s", got)
	}
}
