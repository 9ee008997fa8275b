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
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// roles are what this program does as a process of its own, by the value of CLOSER_ROLE.
var roles = map[string]func(){
	"server":                serve,
	"undumpable":            func() { unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); serve() },
	"seccomp":               func() { testutil.Deny(unix.SYS_PIDFD_GETFD, unix.EPERM); printRefusal("server") },
	"old kernel":            func() { testutil.Deny(unix.SYS_PIDFD_GETFD, unix.ENOSYS); printRefusal("server") },
	"no privilege":          func() { dropPrivileges(); printRefusal("undumpable") },
	"same user":             func() { dropPrivileges(); printRefusal("server") },
	"beside a zombie":       func() { printBeside(startZombie) },
	"beside another server": func() { printBeside(startUndumpable) },
	"init":                  printHolders,
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv("CLOSER_ROLE")]; role != nil {
		role()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve prints the address of a listener, and serves one connection with an echo to the end
// of its stream.
func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	conn, err := l.Accept()
	if err != nil {
		panic(err)
	}
	io.Copy(conn, conn)
	conn.Close()
	select {} // until killed
}

// server is a process in the role of a server, with the connection of a client, on which one
// request has been answered.
type server struct {
	process *os.Process
	stop    func()
	client  net.Conn
	inode   uint32
	cookie  uint64
}

func startServer(role string) (*server, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "CLOSER_ROLE="+role)
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{process: cmd.Process, stop: func() { cmd.Process.Kill(); cmd.Wait() }}
	address, _ := bufio.NewReader(out).ReadString('\n')
	var err error
	s.client, err = net.Dial("tcp", strings.TrimSpace(address))
	if err == nil {
		err = s.exchange("a")
	}
	if err == nil {
		err = s.find()
	}
	if err != nil {
		s.stop()
	}
	return s, err
}

// exchange sends a request and awaits the answer.
func (s *server) exchange(text string) error {
	if _, err := io.WriteString(s.client, text); err != nil {
		return err
	}
	_, err := io.ReadFull(s.client, make([]byte, len(text)))
	return err
}

// find sets the inode and the cookie of the server's socket, whose answer has been acknowledged.
func (s *server) find() error {
	diag, err := sockdiag.Open()
	if err != nil {
		return err
	}
	defer diag.Close()
	for err == nil && s.inode == 0 {
		err = diag.Dump(sockdiag.Query{States: sockdiag.In(tcp.Established)}, func(socket *tcp.Socket) {
			if socket.Remote.String() == s.client.LocalAddr().String() && socket.Unsent == 0 {
				s.inode, s.cookie = socket.Inode, socket.Cookie
			}
		})
	}
	return err
}

func start(t *testing.T) *server {
	t.Helper()
	s, err := startServer("server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// shutDown is one round.
func (s *server) shutDown(isIdle func(*tcp.Socket) bool) (done bool, err error) {
	var c Closer
	defer c.EndRound()
	return c.ShutDown(s.inode, s.cookie, isIdle)
}

func always(*tcp.Socket) bool { return true }

// mustEnd fails the test unless the client reads the end of the stream.
func (s *server) mustEnd(t *testing.T) {
	t.Helper()
	if n, err := s.client.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the client reads %d bytes, %v", n, err)
	}
}

func TestShutDown(t *testing.T) {
	s := start(t)
	before := openDescriptors(t)
	var seen tcp.Socket
	done, err := s.shutDown(func(now *tcp.Socket) bool { seen = *now; return true })
	if !done || err != nil {
		t.Fatalf("done %v, error %v", done, err)
	}
	if seen.State != tcp.Established || seen.Info.Received != 1 || seen.Info.Sent != 1 || seen.Unread+seen.Unsent != 0 {
		t.Errorf("the socket was shown as %+v", seen)
	}
	s.mustEnd(t)
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors were open, now %d", before, after)
	}
}

// A request that arrives before the server looks is still read and answered.
func TestRace(t *testing.T) {
	s := start(t)
	s.process.Signal(syscall.SIGSTOP)
	if _, err := unix.Wait4(s.process.Pid, nil, unix.WUNTRACED, nil); err != nil { // all of its threads
		t.Fatal(err)
	}
	if _, err := io.WriteString(s.client, "b"); err != nil {
		t.Fatal(err)
	}
	var unread uint32
	if done, err := s.shutDown(func(now *tcp.Socket) bool { unread = now.Unread; return true }); !done || err != nil {
		t.Fatalf("done %v, error %v", done, err)
	}
	if unread != 1 {
		t.Errorf("%d bytes were unread, want 1", unread)
	}
	s.process.Signal(syscall.SIGCONT)
	var answer [1]byte
	if _, err := io.ReadFull(s.client, answer[:]); err != nil || answer[0] != 'b' {
		t.Errorf("the client reads %q, %v", answer, err)
	}
	s.mustEnd(t)
}

// Nothing happens to a connection that is not idle, is not the one that is meant, or is not a
// process's of ours.
func TestLeftAlone(t *testing.T) {
	s := start(t)
	never := func(*tcp.Socket) bool { return false }
	cases := map[string]struct {
		isIdle        func(*tcp.Socket) bool
		inode, cookie uint64
	}{
		"busy":           {never, uint64(s.inode), s.cookie},
		"another socket": {always, uint64(s.inode), s.cookie + 1},
		"nobody's":       {always, 1, s.cookie},
	}
	for name, test := range cases {
		var c Closer
		if done, err := c.ShutDown(uint32(test.inode), test.cookie, test.isIdle); done || err != nil {
			t.Errorf("%s: done %v, error %v", name, done, err)
		}
		c.EndRound()
		if err := s.exchange("c"); err != nil {
			t.Errorf("%s: the connection is of no use: %v", name, err)
		}
	}
}

// A full table of descriptors is no fault.
func TestFullTable(t *testing.T) {
	s := start(t)
	var c Closer
	defer c.EndRound()
	c.search()
	var limit unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	full := limit
	full.Cur = 3
	unix.Setrlimit(unix.RLIMIT_NOFILE, &full)
	done, err := c.ShutDown(s.inode, s.cookie, always)
	unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	if done || err != nil {
		t.Errorf("with a full table: done %v, error %v", done, err)
	}
	if done, err = c.ShutDown(s.inode, s.cookie, always); !done || err != nil {
		t.Errorf("later: done %v, error %v", done, err)
	}
}

func openDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestRefused runs each cause of a refusal in a process of its own.
func TestRefused(t *testing.T) {
	for role, want := range map[string]string{
		"seccomp":      "the seccomp profile forbids pidfd_getfd(2): allow it, or add the capability SYS_PTRACE",
		"old kernel":   "pidfd_getfd(2) is missing: it needs Linux 5.6 and a seccomp profile that knows it, and gVisor has none",
		"no privilege": "process N runs as another user, or is not dumpable: run all processes as one user, or lameduck as root with the capability SYS_PTRACE",
		"same user":    "true",
	} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "CLOSER_ROLE="+role)
		out, err := cmd.Output()
		got := regexp.MustCompile(`process \d+`).ReplaceAllString(strings.TrimSpace(string(out)), "process N")
		if err != nil || got != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", role, err, got, want)
		}
	}
}

// TestAppArmor: AppArmor is named as the cause if it confines lameduck, and the server is not another
// user's.
func TestAppArmor(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"/self/attr/apparmor", "/7/fd", "/8/fd"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	foreign := 8
	if os.Lchown(root+"/8/fd", 65534, 65534) != nil { // only root may
		foreign = 9
	}
	const other = "runs as another user, or is not dumpable"
	for _, c := range []struct {
		label string
		pid   int
		want  string
	}{
		{"containers-default-0.62.2//&crun (mixed)\n", 7, "AppArmor's profile \"containers-default-0.62.2//&crun (mixed)\""},
		{"containers-default-0.62.2 (enforce)\n", foreign, other},
		{"unconfined\n", 7, other},
		{"", 7, other},
	} {
		if err := os.WriteFile(root+"/self/attr/apparmor/current", []byte(c.label), 0o644); err != nil {
			t.Fatal(err)
		}
		got := (&Closer{root: procfs.Root(root)}).explain(c.pid, unix.EPERM)
		if !strings.Contains(got.Error(), c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// printRefusal prints why a connection of a server cannot be closed.
func printRefusal(serverRole string) {
	s, err := startServer(serverRole)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.stop()
	var c Closer
	done, err := c.ShutDown(s.inode, s.cookie, always)
	c.EndRound()
	if !done && err == nil {
		done, err = c.ShutDown(s.inode, s.cookie, always) // a later sample still shows the connection
	}
	if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println(done)
	}
}

// TestBystanders: processes whose descriptors cannot be read are no reason for a refusal, if
// they have nothing to do with the connection: one of another server, and a zombie, whose
// descriptors seem to be root's.
func TestBystanders(t *testing.T) {
	for _, role := range []string{"beside a zombie", "beside another server"} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "CLOSER_ROLE="+role)
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
			t.Skip("may not become another user: ", err)
		}
		if got := string(out); err != nil || got != "closed before: false <nil>, open: true <nil>\n" {
			t.Errorf("%s: %v, %s", role, err, got)
		}
	}
}

// printBeside prints what becomes of a connection that has been closed, and of one that is open,
// in the presence of another process.
func printBeside(startOther func() (stop func(), err error)) {
	s, err := startServer("server")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.stop()
	stopOther, err := startOther()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stopOther()
	var c Closer
	defer c.EndRound()
	before, beforeErr := c.ShutDown(1, 1, always)
	done, err := c.ShutDown(s.inode, s.cookie, always)
	fmt.Printf("closed before: %v %v, open: %v %v\n", before, beforeErr, done, err)
}

func startZombie() (stop func(), err error) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = []string{"CLOSER_ROLE="}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { cmd.Wait() }, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
}

func startUndumpable() (stop func(), err error) {
	s, err := startServer("undumpable")
	if err != nil {
		return nil, err
	}
	return s.stop, nil
}

// dropPrivileges drops the capabilities of this thread, on which the rest happens.
func dropPrivileges() {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		panic(err)
	}
}

// PID 1 leaves alone what another container holds that has joined the PID namespace.
func TestOtherContainer(t *testing.T) {
	root := t.TempDir()
	for pid, cgroup := range map[string]string{"1": "0::/", "7": "0::/below", "8": "0::/../other"} {
		os.MkdirAll(root+"/"+pid+"/fd", 0o755)
		os.WriteFile(root+"/"+pid+"/cgroup", []byte(cgroup+"\n"), 0o644)
		os.Symlink("socket:["+pid+"]", root+"/"+pid+"/fd/3")
	}
	os.Symlink("1", root+"/self")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "CLOSER_ROLE=init", "CLOSER_ROOT="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skip("may not make a PID namespace")
	}
	if err != nil || string(out) != "map[7:{7 3}]\n" {
		t.Errorf("the holders are %s, %v", out, err)
	}
}

// printHolders prints what PID 1 finds in another /proc.
func printHolders() {
	c := Closer{WholePIDNamespace: true, root: procfs.Root(os.Getenv("CLOSER_ROOT"))}
	c.search()
	fmt.Println(c.holders)
}
