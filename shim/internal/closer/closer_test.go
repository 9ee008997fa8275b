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
	inode  uint32
	cookie uint64
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
	return connection{client, server, uint32(stat.Ino), socket.Cookie}
}

// closer returns a Closer that has just found this holder of the connection.
func (c connection) closer(pid, fd int) *Closer {
	return &Closer{holders: map[uint32]holder{c.inode: {pid, fd}}, searchedAt: time.Now()}
}

func always(*tcp.Socket) bool { return true }

// A request that has arrived is still read and answered. No descriptor is kept.
func TestShutDown(t *testing.T) {
	conn := connect()
	io.WriteString(conn.client, "b")
	c := conn.closer(os.Getpid(), int(conn.server.Fd()))
	before := lowestFree()
	var seen tcp.Socket
	done, err := c.ShutDown(conn.inode, conn.cookie, func(now *tcp.Socket) bool { seen = *now; return true })
	c.EndRound()
	if !done || err != nil || seen.State != tcp.Established || seen.Unread != 1 {
		t.Errorf("done %v, error %v, of %+v", done, err, seen)
	}
	if after := lowestFree(); after != before {
		t.Errorf("descriptor %d was free, and is not", before)
	}
	if request, err := io.ReadAll(conn.server); err != nil || string(request) != "b" {
		t.Errorf("the server reads %q, %v", request, err)
	}
	io.WriteString(conn.server, "c")
	conn.server.Close()
	if answer, err := io.ReadAll(conn.client); err != nil || string(answer) != "c" {
		t.Errorf("the client reads %q, %v", answer, err)
	}
}

func lowestFree() int {
	fd, _ := unix.Dup(0)
	unix.Close(fd)
	return fd
}

// Nothing happens to a connection that is not idle, or is not the one that is meant. A full table of
// descriptors is no fault.
func TestLeftAlone(t *testing.T) {
	conn := connect()
	pid, fd := os.Getpid(), int(conn.server.Fd())
	leaves := func(what string, c *Closer, cookie uint64, idle bool) {
		t.Helper()
		done, err := c.ShutDown(conn.inode, cookie, func(*tcp.Socket) bool { return idle })
		c.EndRound()
		if done || err != nil {
			t.Errorf("%s: done %v, error %v", what, done, err)
		}
	}
	leaves("busy", conn.closer(pid, fd), conn.cookie, false)
	leaves("another socket", conn.closer(pid, fd), conn.cookie+1, true)
	leaves("descriptor gone", conn.closer(pid, 1<<20), conn.cookie, true)
	leaves("process gone", conn.closer(1<<22, fd), conn.cookie, true) // no process has such a number
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max})
	leaves("full table", conn.closer(pid, fd), conn.cookie, true)
	unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	io.WriteString(conn.client, "x")
	if n, err := conn.server.Read(make([]byte, 1)); n != 1 {
		t.Errorf("the connection is of no use: %v", err)
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
nobody's: false process N runs as another user, or is not dumpable: run all processes as one user, or lameduck as root with the capability SYS_PTRACE
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
	fmt.Println(conn.closer(os.Getpid(), int(conn.server.Fd())).ShutDown(conn.inode, conn.cookie, always))
}

// search prints what becomes of connections beside processes whose descriptors cannot be read: they
// are no reason for a refusal until a later sample shows a connection again that nobody seems to
// hold. The descriptors of a zombie only seem to be root's.
func search() {
	conn := connect()
	server := exec.Command("cat")
	testutil.Must(server.StdinPipe())
	server.ExtraFiles = []*os.File{conn.server}
	zombie := exec.Command("true")
	if err := errors.Join(server.Start(), zombie.Start()); err != nil {
		panic(err)
	}
	unix.Waitid(unix.P_PID, zombie.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	fmt.Println("beside a zombie")
	var c Closer
	nobodys := func() {
		done, err := c.ShutDown(1, 1, always)
		fmt.Println("nobody's:", done, err)
	}
	nobodys()
	nobodys()

	other := process("undumpable")
	testutil.Must(other.StdinPipe())
	out := testutil.Must(other.StdoutPipe())
	if err := other.Start(); err != nil {
		panic(err)
	}
	bufio.NewReader(out).ReadString('\n')
	fmt.Println("beside a process that is not dumpable")
	c = Closer{}
	nobodys()
	done, err := c.ShutDown(conn.inode, conn.cookie, always)
	fmt.Println("open:", done, err)
	nobodys()
}

// TestExplain: who is to blame if the kernel does not say. The process 8 is not ours.
func TestExplain(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"/self/attr/apparmor", "/7/fd", "/sys/kernel/yama"} {
		os.MkdirAll(root+dir, 0o755)
	}
	const profile = "containers-default-0.62.2//&crun (mixed)"
	const other = "runs as another user, or is not dumpable"
	for _, c := range []struct {
		label, scope string
		pid          int
		want         string
	}{
		{profile, "0", 7, "AppArmor's profile " + strconv.Quote(profile)},
		{profile, "0", 8, other},
		{"unconfined", "0", 7, other},
		{"unconfined", "1", 7, "ptrace_scope is 1"},
	} {
		testutil.WriteFile(t, root+"/self/attr/apparmor/current", c.label+"\n")
		testutil.WriteFile(t, root+"/sys/kernel/yama/ptrace_scope", c.scope+"\n")
		hook := Closer{root: procfs.Root(root), WholePIDNamespace: true}
		if got := hook.explain(c.pid, unix.EPERM).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// What another container holds that has joined the PID namespace is left alone.
func TestOtherContainer(t *testing.T) {
	root := t.TempDir()
	own := strconv.Itoa(os.Getpid())
	for pid, cgroup := range map[string]string{own: "0::/", "7": "0::/below", "8": "0::/../other"} {
		os.MkdirAll(root+"/"+pid+"/fd", 0o755)
		testutil.WriteFile(t, root+"/"+pid+"/cgroup", cgroup+"\n")
		os.Symlink("socket:["+pid+"]", root+"/"+pid+"/fd/3")
	}
	os.Symlink(own, root+"/self")
	c := Closer{WholePIDNamespace: true, root: procfs.Root(root)}
	c.search()
	if got := fmt.Sprint(c.holders); got != "map[7:{7 3}]" {
		t.Errorf("the holders are %s", got)
	}
}
