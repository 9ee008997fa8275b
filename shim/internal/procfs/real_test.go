package procfs

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }

// needOwnByteOrder skips a test of real addresses under an emulator of the other byte
// order: the kernel prints addresses in the kernel's order, not in the program's.
func needOwnByteOrder(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	word := binary.NativeEndian.Uint32([]byte{127, 0, 0, 1})
	port := l.Addr().(*net.TCPAddr).Port
	if strings.Contains(string(table), fmt.Sprintf(" %08X:%04X ", bits.ReverseBytes32(word), port)) {
		t.Skip("the kernel has the other byte order, and an emulator runs the test")
	}
}

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

// pair is a connection, the server's end accepted or not.
func pair(t *testing.T, network, listen, dial string, accept bool) (l net.Listener, client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, listen)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", listen, err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	client, err = net.Dial("tcp", net.JoinHostPort(dial, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if accept {
		server, err = l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
	}
	return l, client, server
}

// TestRealTCP: our sockets are in the table, with the addresses of package net.
func TestRealTCP(t *testing.T) {
	needOwnByteOrder(t)
	for _, c := range []struct{ name, network, listen, dial string }{
		{"v4", "tcp4", "127.0.0.1:0", "127.0.0.1"},
		{"v6", "tcp6", "[::1]:0", "::1"},
		{"mapped", "tcp", "[::]:0", "127.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, client, server := pair(t, c.network, c.listen, c.dial, true)
			sockets, err := Root("").TCP(nil)
			if err != nil {
				t.Fatal(err)
			}
			listener := byInode(t, sockets, inodeOf(t, l))
			if listener.State != tcp.Listen || int(listener.Local.Port()) != l.Addr().(*net.TCPAddr).Port || listener.Unread != 0 {
				t.Errorf("listener %+v", listener)
			}
			for _, end := range []net.Conn{client, server} {
				s := byInode(t, sockets, inodeOf(t, end))
				if s.State != tcp.Established ||
					s.Local.String() != unmapped(end.LocalAddr()) || s.Remote.String() != unmapped(end.RemoteAddr()) {
					t.Errorf("%v to %v: %+v", end.LocalAddr(), end.RemoteAddr(), s)
				}
			}
		})
	}
}

// unmapped returns the address as in tcp.Socket.
func unmapped(a net.Addr) string {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()).String()
}

func byInode(t *testing.T, sockets []tcp.Socket, inode uint32) tcp.Socket {
	t.Helper()
	for _, s := range sockets {
		if s.Inode == inode {
			return s
		}
	}
	t.Fatalf("no socket has inode %d: %+v", inode, sockets)
	return tcp.Socket{}
}

// TestNotAccepted: a connection in the accept queue has no inode, and unread bytes.
func TestNotAccepted(t *testing.T) {
	needOwnByteOrder(t)
	l, client, _ := pair(t, "tcp4", "127.0.0.1:0", "127.0.0.1", false)
	if _, err := client.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	untilAcknowledged(t, client)
	sockets, err := Root("").TCP(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := byInode(t, sockets, inodeOf(t, l)); got.Unread != 1 {
		t.Errorf("listener %+v", got)
	}
	i := slices.IndexFunc(sockets, func(s tcp.Socket) bool {
		return s.Remote.String() == client.LocalAddr().String()
	})
	if i < 0 || sockets[i].Inode != 0 || sockets[i].Unread != 5 || sockets[i].State != tcp.Established {
		t.Errorf("queued: %+v in %+v", i, sockets)
	}
}

// untilAcknowledged returns when the other end has received all written bytes: SIOCOUTQ of
// tcp(7).
func untilAcknowledged(t *testing.T, c net.Conn) {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for left := uint32(1); left != 0; {
		if err := raw.Control(func(fd uintptr) { left, err = unix.IoctlGetUint32(int(fd), unix.SIOCOUTQ) }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRealCounters(t *testing.T) {
	netns.Need(t)
	before, err := Root("").Counters()
	if err != nil {
		t.Fatal(err)
	}
	pair(t, "tcp4", "127.0.0.1:0", "127.0.0.1", true)
	pair(t, "tcp4", "127.0.0.1:0", "127.0.0.1", true)
	after, err := Root("").Counters()
	if err != nil || after.PassiveOpens != before.PassiveOpens+2 || after.ActiveOpens != before.ActiveOpens+2 || after.InSegs < before.InSegs+6 {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
}

func TestRealUDP(t *testing.T) {
	server, err := net.ListenPacket("udp", "[::]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	port := server.LocalAddr().(*net.UDPAddr).Port
	client, err := net.Dial("udp4", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found, err := Root("").UDP()
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(found, func(u UDP) bool { return u.Inode == inodeOf(t, server) }); i < 0 || int(found[i].Local.Port()) != port {
		t.Errorf("the server on port %d: %d in %+v", port, i, found)
	}
	if slices.ContainsFunc(found, func(u UDP) bool { return u.Inode == inodeOf(t, client) }) {
		t.Errorf("the client is there: %+v", found)
	}
	ports, err := Root("").LocalPorts()
	if err != nil || !ports.Has(uint16(port)) {
		t.Errorf("%+v, %v has not %d, which the kernel gave us", ports, err, port)
	}
}

func TestRealUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b\nc")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := fmt.Sprint("@procfs-", os.Getpid())
	abstract, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
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
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Unix{{inodeOf(t, l), path}, {inodeOf(t, abstract), name}} {
		if !slices.Contains(found, want) {
			t.Errorf("%q is not in %+v", want.Path, found)
		}
	}
	for _, other := range []any{client, server} {
		if slices.ContainsFunc(found, func(u Unix) bool { return u.Inode == inodeOf(t, other) }) {
			t.Errorf("%T is in %+v", other, found)
		}
	}
}

// TestRealUnixNewlines: the kernel prints a path unescaped; even a path that begins with a
// newline does not make the table unreadable.
func TestRealUnixNewlines(t *testing.T) {
	netns.Need(t)
	t.Chdir(t.TempDir())
	for _, path := range []string{"\nfirst", "last\n", " blank first", "\n", "\x1b[2J\nforged"} {
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
		if found, err := Root("").Unix(); err != nil || !slices.Contains(found, Unix{inodeOf(t, l), path}) {
			t.Errorf("%q is not in %+v: %v", path, found, err)
		}
	}
}
