package scope

import (
	"fmt"
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
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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

// TestUnseen: which sockets of a child make "no listener" uncertain. Sockets of clients do
// not, nor do sockets that are not bound.
func TestUnseen(t *testing.T) {
	asRoot(t)
	server, _ := listen(t, "tcp", "127.0.0.1:0")
	local, _ := listen(t, "unix", "@"+t.TempDir())
	expect := func(name string, file *os.File, want string) {
		t.Helper()
		cmd := helperCommand("hold")
		cmd.ExtraFiles = []*os.File{file}
		t.Run(name, func(t *testing.T) {
			start(t, cmd)
			file.Close() // or it would be a socket of lameduck's own
			sockets, err := procfs.Root("").TCP(nil)
			s := Find(Query{Listeners: sockets, Err: err})
			if got := strings.Join(s.Unseen, " "); got != want || s.NoListener() != (want == "") || !s.Complete {
				t.Errorf("%+v", s)
			}
		})
	}
	for name, c := range map[string]struct {
		family, kind, protocol int
		want                   string
	}{
		"vsock":          {unix.AF_VSOCK, unix.SOCK_STREAM, 0, "vsock sockets"},
		"raw":            {unix.AF_INET, unix.SOCK_RAW, 253, "raw sockets"},
		"raw, IPv6":      {unix.AF_INET6, unix.SOCK_RAW, 253, "raw sockets"},
		"SCTP":           {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, "SCTP sockets"},
		"UDP-Lite":       {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, `sockets of the protocol "UDP-Lite"`},
		"netlink":        {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, ""},
		"packet":         {unix.AF_PACKET, unix.SOCK_RAW, 0, ""},
		"TCP, unbound":   {unix.AF_INET, unix.SOCK_STREAM, 0, ""},
		"UDP, unbound":   {unix.AF_INET, unix.SOCK_DGRAM, 0, ""},
		"MPTCP, unbound": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, ""},
	} {
		if fd, err := unix.Socket(c.family, c.kind|unix.SOCK_CLOEXEC, c.protocol); err != nil {
			t.Logf("%s: no such socket: %v", name, err)
		} else {
			expect(name, os.NewFile(uintptr(fd), "socket"), c.want)
		}
	}
	for network, address := range map[string]string{
		"tcp": server.Addr().String(), "udp": "127.0.0.1:53", "unix": local.Addr().String(),
	} {
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		file, err := conn.(filer).File()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		expect("a client, "+network, file, "")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	expect("no socket", r, "")
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
	for _, cells := range script.Rows(`
		# helper | new namespaces | method | ports | why
		# PID 1 looks, and a child has the listener
		first self           | pid mount | descriptors | ports |
		# a child looks at its descendants
		first 0              | pid mount | descriptors |       |
		first 0 everyone     | pid mount | descriptors | ports |
		first 65534          | pid mount | descriptors |       |
		first 65534 everyone | pid mount | namespace   | ports | process 1, permission denied
		# a child of another user
		drop                 |           | namespace   | ports | permission denied
		docker               |           | namespace   | ports | permission denied
		# /proc shows other processes by our numbers
		look                 | pid       | namespace   | ports | PID namespace
		hidden               | pid mount | namespace   | ports | hidepid
	`) {
		args, none := cells[0], cells[3] == ""
		t.Run(args, func(t *testing.T) {
			if strings.Contains(args, "65534") || cells[1] == "" {
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
			flags := map[string]uintptr{"pid": syscall.CLONE_NEWPID, "pid mount": syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags[cells[1]]}
			s := startSeen(t, cmd)
			if s.Method != cells[2] || s.None != none || slices.Contains(s.Ports, port) == none || !s.Complete {
				t.Errorf("%+v", s)
			}
			for why := range strings.SplitSeq(cells[4], ", ") {
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
	testutil.Eventually(t, dir+" is removed", func() bool { return unix.Rmdir(dir) == nil })
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
