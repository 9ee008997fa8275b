package scope

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// asRoot skips a test that needs root's rights.
func asRoot(t *testing.T) {
	t.Helper()
	netns.Need(t)
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// severalUsers skips a test that needs a second user, unavailable in a user namespace of our
// own making.
func severalUsers(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/uid_map")
	var inside, outside, count int
	fmt.Sscan(string(text), &inside, &outside, &count)
	if inside+count <= 65534 {
		t.Skipf("there is no user 65534: %q, %v", text, err)
	}
}

func listen(t *testing.T, network, address string) (l net.Listener, port uint16) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		port = uint16(a.Port)
	}
	return l, port
}

// filer is implemented by the sockets of package net; a child inherits the file.
type filer interface{ File() (*os.File, error) }

// give starts a helper with the socket, and closes our own descriptor.
func give(t *testing.T, name string, socket interface {
	filer
	Close() error
}) {
	t.Helper()
	file, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := helperCommand(name)
	cmd.ExtraFiles = []*os.File{file}
	start(t, cmd)
	file.Close()
	socket.Close()
}

// lookHere returns our own scope, by descriptors.
func lookHere(t *testing.T) Scope {
	t.Helper()
	sockets, err := procfs.Root("").TCP(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := Gather(Query{Listeners: sockets})
	if f.Held.Err != nil {
		t.Fatal(f.Held.Err)
	}
	return Decide(f)
}

// TestHeld: the listeners of children and grandchildren are ours; the test's own sockets are
// lameduck's.
func TestHeld(t *testing.T) {
	netns.Need(t)
	if s := lookHere(t); !s.NoListener() {
		t.Fatalf("to begin with: %+v", s)
	}
	own, _ := listen(t, "tcp", "127.0.0.1:0")
	if s := lookHere(t); !s.NoListener() {
		t.Errorf("with a listener of lameduck's own, %v: %+v", own.Addr(), s)
	}
	l, port := listen(t, "tcp", "127.0.0.1:0")
	deep, deeper := listen(t, "tcp", "[::]:0")
	path := filepath.Join(t.TempDir(), "app.sock")
	u, _ := listen(t, "unix", path)
	u.(*net.UnixListener).SetUnlinkOnClose(false)
	packets, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		packets, err = net.ListenPacket("udp", "127.0.0.1:20053")
	}
	if err != nil {
		t.Fatal(err)
	}
	udpPort := uint16(packets.LocalAddr().(*net.UDPAddr).Port)
	give(t, "hold", l.(*net.TCPListener))
	give(t, "nest", deep.(*net.TCPListener))
	give(t, "hold", u.(*net.UnixListener))
	give(t, "hold", packets.(*net.UDPConn))
	s := lookHere(t)
	want := tcp.PortSet([]uint16{port, deeper})
	if s.Method != Descriptors || !s.Complete || s.Why != nil || !slices.Equal(s.Ports, want) ||
		!slices.Equal(s.UDP, Ports{udpPort}) || !slices.Equal(s.Unix, []string{path}) {
		t.Errorf("%+v, want TCP %v, UDP %d, Unix %s", s, want, udpPort, path)
	}
}

// newSocket returns a socket as a file.
func newSocket(t *testing.T, family, kind, protocol int) *os.File {
	t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Skip("no such socket: ", err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	t.Cleanup(func() { file.Close() })
	return file
}

// fileOf returns a socket of package net as a file.
func fileOf(t *testing.T, socket any, err error) *os.File {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	file, err := socket.(filer).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close(); socket.(io.Closer).Close() })
	return file
}

// TestUnseen: which sockets of a child make "no listener" uncertain. Sockets of clients do
// not, nor do sockets that are not bound.
func TestUnseen(t *testing.T) {
	asRoot(t)
	inet := func(kind int) func(*testing.T) *os.File {
		return func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET, kind, 0) }
	}
	server, _ := listen(t, "tcp", "127.0.0.1:0")
	local, _ := listen(t, "unix", "@"+t.TempDir())
	dial := func(network, address string) func(*testing.T) *os.File {
		return func(t *testing.T) *os.File {
			conn, err := net.Dial(network, address)
			return fileOf(t, conn, err)
		}
	}
	for name, c := range map[string]struct {
		socket func(*testing.T) *os.File
		want   []string
	}{
		"vsock":           {func(t *testing.T) *os.File { return newSocket(t, unix.AF_VSOCK, unix.SOCK_STREAM, 0) }, []string{"vsock sockets"}},
		"raw":             {func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET, unix.SOCK_RAW, 253) }, []string{"raw sockets"}},
		"raw, IPv6":       {func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET6, unix.SOCK_RAW, 253) }, []string{"raw sockets"}},
		"SCTP":            {func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP) }, []string{"SCTP sockets"}},
		"UDP-Lite":        {func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE) }, []string{`sockets of the protocol "UDP-Lite"`}},
		"netlink":         {func(t *testing.T) *os.File { return newSocket(t, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE) }, nil},
		"packet":          {func(t *testing.T) *os.File { return newSocket(t, unix.AF_PACKET, unix.SOCK_RAW, 0) }, nil},
		"TCP, unbound":    {inet(unix.SOCK_STREAM), nil},
		"UDP, unbound":    {inet(unix.SOCK_DGRAM), nil},
		"MPTCP, unbound":  {func(t *testing.T) *os.File { return newSocket(t, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP) }, nil},
		"TCP, outbound":   {dial("tcp", server.Addr().String()), nil},
		"UDP, outbound":   {dial("udp", "127.0.0.1:53"), nil},
		"Unix, connected": {dial("unix", local.Addr().String()), nil},
		"no socket":       {func(t *testing.T) *os.File { return fileOfPipe(t) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := helperCommand("hold")
			cmd.ExtraFiles = []*os.File{c.socket(t)}
			start(t, cmd)
			c.socket = nil
			if s := findHere(t, cmd.ExtraFiles[0]); !slices.Equal(s.Unseen, c.want) || s.NoListener() != (c.want == nil) || !s.Complete {
				t.Errorf("%+v", s)
			}
		})
	}
}

func fileOfPipe(t *testing.T) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r
}

// findHere closes our descriptor of a child's socket, which would be a socket of lameduck's
// own, and returns our scope.
func findHere(t *testing.T, given *os.File) Scope {
	t.Helper()
	given.Close()
	sockets, err := procfs.Root("").TCP(nil)
	return Find(Query{Listeners: sockets, Err: err})
}

// TestUnseenNamespace: a child in another network namespace may listen there.
func TestUnseenNamespace(t *testing.T) {
	asRoot(t)
	cmd := helperCommand("hold")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	start(t, cmd)
	sockets, err := procfs.Root("").TCP(nil)
	if s := Find(Query{Listeners: sockets, Err: err}); !slices.Equal(s.Unseen, []string{"another network namespace"}) || s.NoListener() {
		t.Errorf("%+v", s)
	}
}

// TestSocketKind: an error is never "there is none", unless the socket is closed or the
// system names no protocols.
func TestSocketKind(t *testing.T) {
	for err, unseen := range map[error]bool{unix.ENOENT: false, unix.ESRCH: false, unix.EOPNOTSUPP: false, unix.ENODATA: false, unix.ENOSYS: false, unix.EACCES: true, unix.EPERM: true} {
		if got := socketKind("", err); (got != "") != unseen {
			t.Errorf("%v: %q", err, got)
		}
	}
}

// TestHelpers: what helpers see of a listener of PID 1 in a PID namespace, of the test's (of which
// each sees that somebody listens), and of processes that they may not look at. What cannot be
// looked at makes the method Namespace, for a reason.
func TestHelpers(t *testing.T) {
	asRoot(t)
	const newPID, newProc = syscall.CLONE_NEWPID, syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	for args, c := range map[string]struct {
		flags  uintptr
		method Method
		none   bool
		why    []string
	}{
		"first self":           {newProc, Descriptors, false, nil}, // PID 1 looks, a child has the listener
		"first 0":              {newProc, Descriptors, true, nil},  // a child looks at its descendants
		"first 0 everyone":     {newProc, Descriptors, false, nil},
		"first 65534":          {newProc, Descriptors, true, nil},
		"first 65534 everyone": {newProc, Namespace, false, []string{"process 1", "permission denied"}},
		"drop":                 {0, Namespace, false, []string{"permission denied"}}, // a child of another user
		"docker":               {0, Namespace, false, []string{"permission denied"}},
		"look":                 {newPID, Namespace, false, []string{"PID namespace"}}, // /proc shows other processes by our numbers
		"hidden":               {newProc, Namespace, false, []string{"hidepid"}},
	} {
		t.Run(args, func(t *testing.T) {
			if strings.Contains(args, "65534") || c.flags == 0 {
				severalUsers(t)
			}
			l, port := listen(t, "tcp", "127.0.0.1:0")
			file, err := l.(*net.TCPListener).File()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			cmd := helperCommand(strings.Fields(args)...)
			if strings.HasPrefix(args, "first") {
				cmd.ExtraFiles = []*os.File{file}
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: c.flags}
			s := startSeen(t, cmd)
			if s.Method != c.method.String() || s.None != c.none || slices.Contains(s.Ports, port) == c.none || !s.Complete {
				t.Errorf("%+v", s)
			}
			for _, why := range c.why {
				if !strings.Contains(s.Why, why) {
					t.Errorf("because of %q, want %q", s.Why, why)
				}
			}
		})
	}
}

// TestGroups: listeners in our group and below are ours, a listener outside is not; also if
// a cgroup namespace hides our path.
func TestGroups(t *testing.T) {
	asRoot(t)
	top := newGroup(t)
	_, port := listen(t, "tcp", "127.0.0.1:0")
	for name, flags := range map[string]uintptr{"plain": 0, "namespace": syscall.CLONE_NEWCGROUP} {
		t.Run(name, func(t *testing.T) {
			cmd := helperCommand("group", top)
			fd, err := unix.Open(top, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd, Cloneflags: flags}
			s := startSeen(t, cmd)
			var want []uint16
			for _, p := range s.Listens {
				want = append(want, uint16(p))
			}
			if s.Method != Cgroup.String() || !slices.Equal(s.Ports, tcp.PortSet(want)) || s.Ports.Has(port) {
				t.Errorf("%+v, not with %d", s, port)
			}
			if sub := inode(filepath.Join(top, "sub")); !slices.Equal(s.Groups, []uint64{sub}) {
				t.Errorf("below: %v, want %d", s.Groups, sub)
			}
		})
	}
}

// newGroup makes a control group with a group named sub, and removes both when the test's
// processes have left.
func newGroup(t *testing.T) string {
	t.Helper()
	mounts, err := procfs.Root("").Mounts()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mounts, func(m procfs.Mount) bool { return m.Kind == "cgroup2" })
	if i < 0 {
		t.Skip("no cgroup2 is mounted")
	}
	dir := filepath.Join(mounts[i].Point, fmt.Sprint("lameduck-scope-test-", os.Getpid()))
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no control group can be made: ", err)
	}
	t.Cleanup(func() { remove(t, dir) })
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Skip("no nested control group can be made: ", err)
	}
	t.Cleanup(func() { remove(t, sub) })
	return dir
}

func remove(t *testing.T, dir string) {
	if err := unix.Rmdir(dir); err != nil {
		t.Errorf("cannot remove %q: %v", dir, err)
	}
}

// TestNoGroup: if our group is not found, the groups below are unknown.
func TestNoGroup(t *testing.T) {
	if ids := readCgroups("/proc", 1); ids.Err != nil || ids.usable() {
		t.Errorf("the root: %+v", ids)
	}
	if ids := readCgroups("/proc", 1<<60); ids.Err == nil || !ids.usable() {
		t.Errorf("no such group: %+v", ids)
	}
	if ids := readCgroups(procfs.Root(t.TempDir()), 5); ids.Err == nil {
		t.Errorf("no /proc: %+v", ids)
	}
}

// TestNoProc: without /proc no list is complete.
func TestNoProc(t *testing.T) {
	s := Decide(Gather(Query{Proc: procfs.Root(t.TempDir())}))
	if s.NoListener() || s.Complete || s.Method != Namespace || s.Why == nil {
		t.Errorf("%+v", s)
	}
}
