package sockdiag

import (
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openConn(t testing.TB) *Conn {
	t.Helper()
	netns.Need(t)
	c, err := Open()
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// dump returns the sockets that Dump visits, by cookie, and fails if a socket is visited
// twice.
func dump(t testing.TB, c *Conn, q Query) map[uint64]tcp.Socket {
	t.Helper()
	all := map[uint64]tcp.Socket{}
	must(t, c.Dump(q, func(s *tcp.Socket) {
		if other, twice := all[s.Cookie]; twice {
			t.Errorf("%+v and %+v have the same cookie", other, *s)
		}
		all[s.Cookie] = *s
	}))
	return all
}

func listen(t testing.TB, network, addr string) *net.TCPListener {
	t.Helper()
	return listenWith(t, network, addr, false)
}

// listenWith returns a listener, with MPTCP if mptcp is true (the default in package
// net). With MPTCP the kernel lists the TCP socket below the descriptor's socket: the
// inode is the same, the cookie another.
func listenWith(t testing.TB, network, addr string, mptcp bool) *net.TCPListener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(mptcp)
	l, err := config.Listen(t.Context(), network, addr)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func portOf(l net.Listener) uint16 { return l.Addr().(*net.TCPAddr).AddrPort().Port() }

// dial connects to the port of l at addr.
func dial(t testing.TB, l net.Listener, addr string) *net.TCPConn {
	t.Helper()
	to := netip.AddrPortFrom(netip.MustParseAddr(addr), portOf(l))
	c, err := net.Dial("tcp", to.String())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// pair returns both ends of a connection to l.
func pair(t testing.TB, l *net.TCPListener, addr string) (client, server *net.TCPConn) {
	t.Helper()
	client = dial(t, l, addr)
	server, err := l.AcceptTCP()
	must(t, err)
	t.Cleanup(func() { server.Close() })
	return client, server
}

// say writes text at one end and reads the text at the other.
func say(t testing.TB, from, to net.Conn, text string) {
	t.Helper()
	_, err := io.WriteString(from, text)
	must(t, err)
	_, err = io.ReadFull(to, make([]byte, len(text)))
	must(t, err)
}

// onFD calls f with the descriptor of c.
func onFD(t testing.TB, c syscall.Conn, f func(fd int)) {
	t.Helper()
	raw, err := c.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { f(int(fd)) }))
}

// cookie returns SO_COOKIE; see socket(7).
func cookie(t testing.TB, c syscall.Conn) (id uint64) {
	t.Helper()
	onFD(t, c, func(fd int) {
		var err error
		id, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
		must(t, err)
	})
	return id
}

// known returns the values of a socket by getsockopt(2), fstat(2) and getsockname(2), without
// Info and queues.
func known(t testing.TB, c syscall.Conn) (s tcp.Socket) {
	t.Helper()
	s.Cookie = cookie(t, c)
	onFD(t, c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		must(t, err)
		s.State = tcp.State(info.State)
		var st unix.Stat_t
		must(t, unix.Fstat(fd, &st))
		s.Inode = uint32(st.Ino)
	})
	s.Local, s.Remote = ends(c)
	return s
}

func ends(c syscall.Conn) (local, remote netip.AddrPort) {
	switch c := c.(type) {
	case *net.TCPConn:
		return unmap(c.LocalAddr()), unmap(c.RemoteAddr())
	case *net.TCPListener:
		local = unmap(c.Addr())
		remote = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
		if local.Addr().Is4() {
			remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		}
	}
	return local, remote
}

func unmap(a net.Addr) netip.AddrPort {
	end := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port())
}

func TestMain(m *testing.M) { netns.Main(m, 0) }

// TestAllocations tests Read with many events: no allocations. (Dump is tested in observe.)
func TestAllocations(t *testing.T) {
	netns.Need(t)
	l := listen(t, "tcp", ":0")
	const many = 500
	var ends []io.Closer
	for range many {
		client, server := pair(t, l, "127.0.0.1")
		ends = append(ends, server, client)
	}
	ports := []uint16{portOf(l), 80, 443}
	e, all := openEvents(t, ports), openEvents(t, ports)
	for _, end := range ends {
		end.Close()
	}
	received, n := 0, 0
	wait(t, all, func() bool { return received >= many }, func(*tcp.Socket) { received++ })
	visit := func(*tcp.Socket) { n++ }
	if allocs := testing.AllocsPerRun(1, func() { e.Read(visit) }); allocs > 0 || n != many {
		t.Errorf("Read: %v allocations, %d events; want none, %d", allocs, n, many)
	}
}
