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
	"github.com/lameduck-init/lameduck/shim/internal/procnet"
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
	sockets, err := procnet.Root("").TCP(nil)
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
	want := newPorts([]uint16{port, deeper})
	if s.Method != Descriptors || !s.Complete || s.Why != nil || !slices.Equal(s.Ports, want) ||
		!slices.Equal(s.UDP, Ports{udpPort}) || !slices.Equal(s.Unix, []string{path}) {
		t.Errorf("%+v, want TCP %v, UDP %d, Unix %s", s, want, udpPort, path)
	}
}

// TestWholePIDNamespace: a child in a PID namespace whose PID 1 has a listener sees that
// listener if the whole namespace counts.
func TestWholePIDNamespace(t *testing.T) {
	asRoot(t)
	for _, c := range []struct {
		args   []string
		method Method
		none   bool
	}{
		{[]string{"self"}, Descriptors, false}, // PID 1 looks, a child has the listener
		{[]string{"0"}, Descriptors, true},     // a child looks at its descendants
		{[]string{"0", "everyone"}, Descriptors, false},
		{[]string{"65534"}, Descriptors, true},
		{[]string{"65534", "everyone"}, Namespace, false}, // PID 1 is unreadable
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if c.args[0] != "self" {
				severalUsers(t)
			}
			l, port := listen(t, "tcp", "127.0.0.1:0")
			file, err := l.(*net.TCPListener).File()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			cmd := helperCommand(append([]string{"first"}, c.args...)...)
			cmd.ExtraFiles = []*os.File{file}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
			s := startSeen(t, cmd)
			if s.Method != c.method.String() || s.None != c.none || slices.Contains(s.Ports, port) == c.none || !s.Complete {
				t.Errorf("%+v", s)
			}
			if denied := strings.Contains(s.Why, "process 1") && strings.Contains(s.Why, "permission denied"); denied != (c.method == Namespace) {
				t.Errorf("because of %q", s.Why)
			}
		})
	}
}

// TestUnreadable: a child of another user, with unreadable descriptors, makes the method
// Namespace.
func TestUnreadable(t *testing.T) {
	asRoot(t)
	severalUsers(t)
	_, port := listen(t, "tcp", "127.0.0.1:0")
	for _, name := range []string{"drop", "docker"} {
		s := startSeen(t, helperCommand(name))
		if s.Method != Namespace.String() || !slices.Contains(s.Ports, port) || s.None || !strings.Contains(s.Why, "permission denied") {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestForeignProc: /proc of another PID namespace shows other processes by our numbers.
func TestForeignProc(t *testing.T) {
	asRoot(t)
	_, port := listen(t, "tcp", "127.0.0.1:0")
	cmd := helperCommand("look")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	s := startSeen(t, cmd)
	if s.Method != Namespace.String() || !slices.Contains(s.Ports, port) || !strings.Contains(s.Why, "PID namespace") {
		t.Errorf("%+v", s)
	}
}

// TestHidden: hidden processes may hold sockets.
func TestHidden(t *testing.T) {
	asRoot(t)
	_, port := listen(t, "tcp", "127.0.0.1:0")
	cmd := helperCommand("hidden")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	s := startSeen(t, cmd)
	if s.Method != Namespace.String() || !slices.Contains(s.Ports, port) || !strings.Contains(s.Why, "hidepid") {
		t.Errorf("%+v", s)
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
			if s.Method != Cgroup.String() || !slices.Equal(s.Ports, newPorts(want)) || s.Ports.Has(port) {
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
