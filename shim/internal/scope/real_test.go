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

// TestUnseen: which sockets of a child make "no listener" uncertain.
func TestUnseen(t *testing.T) {
	asRoot(t)
	for name, c := range map[string]struct {
		family, kind, protocol int
		want                   string
	}{
		"vsock":          {unix.AF_VSOCK, unix.SOCK_STREAM, 0, "vsock sockets"},
		"raw":            {unix.AF_INET, unix.SOCK_RAW, 253, "raw sockets"},
		"raw, IPv6":      {unix.AF_INET6, unix.SOCK_RAW, 253, "raw sockets"},
		"SCTP":           {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, "SCTP sockets"},
		"UDP-Lite":       {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE, `sockets of the protocol "UDP-Lite"`},
		"packet":         {unix.AF_PACKET, unix.SOCK_RAW, 0, ""},
		"UDP, unbound":   {unix.AF_INET, unix.SOCK_DGRAM, 0, ""},
		"MPTCP, unbound": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.Socket(c.family, c.kind|unix.SOCK_CLOEXEC, c.protocol)
			if err != nil {
				t.Skip("no such socket: ", err)
			}
			file := os.NewFile(uintptr(fd), "socket")
			cmd := helperCommand("hold")
			cmd.ExtraFiles = []*os.File{file}
			start(t, cmd)
			file.Close() // or it would be a socket of lameduck's own
			sockets, err := procfs.Root("").TCP(nil)
			s := Find(Query{Listeners: sockets, Err: err})
			if got := strings.Join(s.Unseen, " "); got != c.want || s.NoListener() != (c.want == "") || !s.Complete {
				t.Errorf("%+v", s)
			}
		})
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

// TestGroups: the groups below ours, also if a cgroup namespace hides our path. Any directory may
// stand for a group.
func TestGroups(t *testing.T) {
	top := t.TempDir()
	own, sub := filepath.Join(top, "own"), filepath.Join(top, "own/sub")
	must(t, os.MkdirAll(sub, 0o700))
	must(t, os.WriteFile(filepath.Join(own, "cgroup.procs"), nil, 0o600))
	for _, path := range []string{"/own", "/", "/../own"} {
		proc := t.TempDir()
		must(t, os.Mkdir(filepath.Join(proc, "self"), 0o700))
		must(t, os.WriteFile(filepath.Join(proc, "self/cgroup"), []byte("0::"+path+"\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(proc, "self/mountinfo"), []byte("1 2 0:3 / "+top+" rw - cgroup2 none rw\n"), 0o600))
		if ids := readCgroups(procfs.Root(proc), inode(own)); ids.Err != nil || !slices.Equal(ids.Below, []uint64{inode(sub)}) {
			t.Errorf("%s: %+v", path, ids)
		}
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
