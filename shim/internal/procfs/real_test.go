package procfs

import (
	"net"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }

// inodeOf returns a socket's inode, by fstat(2).
func inodeOf(t *testing.T, socket any) uint32 {
	t.Helper()
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &stat) }); err != nil {
		t.Fatal(err)
	}
	return uint32(stat.Ino)
}

// TestRealUnix: listeners are in the table, with any path: the kernel prints a path unescaped, and
// even a path that begins with a newline does not make the table unreadable.
func TestRealUnix(t *testing.T) {
	netns.Need(t)
	t.Chdir(t.TempDir())
	for _, path := range []string{
		"@abstract", "plain", "a b\nc", "\nfirst", "last\n", " blank first", "\n", "\x1b[2J\nforged",
	} {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		datagram, err := net.ListenPacket("unixgram", path+".datagram") // not listening
		if err != nil {
			t.Fatal(err)
		}
		defer datagram.Close()
		client, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		server, err := l.Accept() // same path as the listener, but not listening
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		found, err := Root("").Unix()
		if err != nil || !slices.Contains(found, Unix{inodeOf(t, l), path}) {
			t.Errorf("%q is not in %+v: %v", path, found, err)
		}
		for _, other := range []any{client, server, datagram} {
			if slices.ContainsFunc(found, func(u Unix) bool { return u.Inode == inodeOf(t, other) }) {
				t.Errorf("%q: %T is in %+v", path, other, found)
			}
		}
	}
}
