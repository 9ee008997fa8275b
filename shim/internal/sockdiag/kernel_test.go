package sockdiag

import (
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func TestMain(m *testing.M) { netns.Main(m, 0) }

func openEvents(t *testing.T, ports ...uint16) *Events {
	netns.Need(t)
	e := testutil.Must(OpenEvents(ports))
	t.Cleanup(func() { e.Close() })
	return e
}

// next returns the next n events, or those before some were missed.
func next(t *testing.T, e *Events, n int) (got []tcp.Socket, missed bool) {
	t.Helper()
	testutil.Eventually(t, "events arrive", func() bool {
		missed = e.Read(func(s *tcp.Socket) { got = append(got, *s) }) || missed
		return len(got) >= n || missed
	})
	return got, missed
}

// listen returns a listener on all addresses, of IPv4 alone if the network is tcp4.
func listen(t *testing.T, network string) *net.TCPListener {
	t.Helper()
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	l := testutil.Must(config.Listen(t.Context(), network, ":0"))
	t.Cleanup(func() { l.Close() })
	return l.(*net.TCPListener)
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// pair returns both ends of a connection to l: the client has said "ping", and the server "answer".
func pair(t *testing.T, l *net.TCPListener) (client, server *net.TCPConn) {
	t.Helper()
	client = testutil.Must(net.Dial("tcp", fmt.Sprint("127.0.0.1:", portOf(l)))).(*net.TCPConn)
	server = testutil.Must(l.AcceptTCP())
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	testutil.Must(io.WriteString(client, "ping"))
	testutil.Must(io.ReadFull(server, make([]byte, 4)))
	testutil.Must(io.WriteString(server, "answer"))
	testutil.Must(io.ReadFull(client, make([]byte, 6)))
	return client, server
}

// closeOne makes and closes a connection, and returns the socket of the server.
func closeOne(t *testing.T, l *net.TCPListener) tcp.Socket {
	t.Helper()
	client, server := pair(t, l)
	s := onFD(server, ReadSocket)
	client.Close()
	io.Copy(io.Discard, server)
	server.Close()
	return s
}

// onFD returns what f makes of the descriptor of c.
func onFD[T any](c syscall.Conn, f func(fd int) (T, error)) (value T) {
	raw := testutil.Must(c.SyscallConn())
	raw.Control(func(fd uintptr) { value = testutil.Must(f(int(fd))) })
	return value
}

// inode returns the inode of a descriptor, by fstat(2).
func inode(fd int) (uint32, error) {
	var stat unix.Stat_t
	err := unix.Fstat(fd, &stat)
	return uint32(stat.Ino), err
}

// TestDump: a dump shows a listener and a connection with the inodes of their descriptors, where the
// listener is of MPTCP, as by default in package net, too: the kernel lists the TCP socket below. The
// descriptor of a connection shows the same as the dump.
func TestDump(t *testing.T) {
	var c Lister
	l := testutil.Must(net.Listen("tcp", ":0")).(*net.TCPListener)
	defer l.Close()
	client, server := pair(t, l)
	testutil.Must(io.WriteString(client, "unread"))
	testutil.Eventually(t, "received", func() bool { return onFD(server, ReadSocket).Unread == 6 })
	dump := func(state tcp.State) (found tcp.Socket) {
		n := 0
		ports := tcp.Ports{portOf(l)}
		if err := c.Dump(In(state), ports, func(s *tcp.Socket) { found = *s; n++ }); err != nil || n != 1 {
			t.Errorf("%d sockets, %v; want one in state %d", n, err, state)
		}
		return found
	}
	if s := dump(tcp.Listen); s.Inode != onFD(l, inode) || s.HasInfo {
		t.Errorf("listener %+v", s)
	}
	got, want := dump(tcp.Established), onFD(server, ReadSocket)
	if got.Inode != onFD(server, inode) || got.Cookie != want.Cookie || got.Unread != want.Unread || !got.HasInfo {
		t.Errorf("connection %+v, want %+v", got, want)
	}
	if got.Info.Received != 10 || want.Info.Received != 10 || got.Info.Sent != 6 || want.Info.Sent != 6 {
		t.Errorf("connection %+v, want %+v", got, want)
	}
}

// kernel visits the sockets that the kernel sends, which may be more than match.
func kernel(states States, ports tcp.Ports, visit func(*tcp.Socket)) {
	fd := testutil.Must(connect())
	defer unix.Close(fd)
	var l Lister
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		testutil.Must(unix.Write(fd, newRequest(nil, family, states, ports)))
		for r := (reply{sock: &l.sock, visit: visit}); !r.done; {
			testutil.Must(0, r.parse(l.buf[:testutil.Must(receive(fd, l.buf[:]))]))
		}
	}
}

// TestPorts: any number of ports in a dump and in events, where up to 256 ports the kernel
// leaves the others out. Events of the first port stay when further ports are set.
func TestPorts(t *testing.T) {
	var c Lister
	for _, n := range []int{1, 3, 256, 300} {
		all := openEvents(t)
		var listeners []*net.TCPListener
		var ports []uint16
		for i := range 2 * n {
			l := listen(t, []string{"tcp", "tcp4"}[i/2%2])
			listeners = append(listeners, l)
			if i%2 == 0 {
				ports = append(ports, portOf(l), portOf(l))
			}
		}
		e := openEvents(t, ports[0])
		want := tcp.PortSet(ports)
		var listed, passed []uint16
		err := c.Dump(In(tcp.Listen), want, func(s *tcp.Socket) { listed = append(listed, s.Local.Port()) })
		if slices.Sort(listed); err != nil || !slices.Equal(listed, want) {
			t.Errorf("%d ports: listed %v, %v; want %v", n, listed, err, want)
		}
		kernel(In(tcp.Listen), want, func(s *tcp.Socket) { passed = append(passed, s.Local.Port()) })
		if slices.Sort(passed); n <= 256 && !slices.Equal(passed, want) {
			t.Errorf("%d ports: the kernel lists %v, want %v", n, passed, want)
		}
		for i, l := range listeners {
			l.Close()
			if i == 1 {
				next(t, all, 2)
				e.SetPorts(want)
			}
		}
		next(t, all, 2*n-2)
		if n <= 256 {
			e.ports = nil // so that the kernel filters alone
		}
		var closed []uint16
		e.Read(func(s *tcp.Socket) { closed = append(closed, s.Local.Port()) })
		if slices.Sort(closed); !slices.Equal(closed, want) {
			t.Errorf("%d ports: events of %v, want %v", n, closed, want)
		}
	}
}

// TestManySockets: a dump after one whose visitor panics, which leaves a reply of several datagrams
// behind. A dump allocates nothing per socket.
func TestManySockets(t *testing.T) {
	var c Lister
	for range 300 {
		listen(t, "tcp4")
	}
	func() {
		defer func() { recover() }()
		c.Dump(AllStates, nil, func(*tcp.Socket) { panic("enough") })
	}()
	n := 0
	if err := c.Dump(AllStates, nil, func(*tcp.Socket) { n++ }); err != nil || n < 300 {
		t.Errorf("%d sockets, %v; want at least 300", n, err)
	}
	if AllStates != 0x1ffe { // all but 0
		t.Errorf("the states are %x", AllStates)
	}
	if allocs := testing.AllocsPerRun(10, func() { c.Dump(AllStates, nil, func(*tcp.Socket) {}) }); allocs > 20 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestNoCarrier: what our own device drops does not count as sent again, of data and of probes.
func TestNoCarrier(t *testing.T) {
	var c Lister
	l := listen(t, "tcp4")
	_, server := pair(t, l)
	tc := func(words string) {
		if out, err := exec.Command("tc", strings.Fields(words)...).CombinedOutput(); err != nil {
			t.Skipf("tc %s: %v: %s", words, err, out)
		}
	}
	tc("qdisc add dev lo root pfifo limit 0")
	testutil.Must(io.WriteString(server, "more"))
	last := tcp.Socket{}
	testutil.Eventually(t, "three tries", func() bool {
		c.Dump(In(tcp.Established), tcp.Ports{portOf(l)}, func(s *tcp.Socket) { last = *s })
		return last.Info.Sent >= 6+3*4 || last.Retries > 0
	})
	tc("qdisc del dev lo root")
	if last.Retries != 0 || last.Unsent == 0 {
		t.Errorf("%+v", last)
	}
}

// TestNetlinkSockets: no command inherits the sockets, the wait for a reply is limited, and
// messages of other processes are refused.
func TestNetlinkSockets(t *testing.T) {
	e := openEvents(t)
	c := testutil.Must(connect())
	defer unix.Close(c)
	for _, fd := range []int{c, e.FD()} {
		if flags := testutil.Must(unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)); flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited", fd)
		}
	}
	limit := testutil.Must(unix.GetsockoptTimeval(c, unix.SOL_SOCKET, unix.SO_RCVTIMEO))
	if limit.Nano() != int64(dumpTimeout) {
		t.Errorf("SO_RCVTIMEO = %v, want %v", time.Duration(limit.Nano()), dumpTimeout)
	}
	to := testutil.Must(unix.Getsockname(c))
	other := testutil.Must(newSocket(0))
	defer unix.Close(other)
	if err := unix.Sendto(other, encode(unix.NLMSG_DONE, 0, nil), 0, to); err != unix.ECONNREFUSED && err != unix.EPERM {
		t.Errorf("sending from another socket = %v, want ECONNREFUSED or EPERM", err)
	}
}

// TestEvents: a connection that ends has one event, whoever closes first. The FIN of the peer does
// not count as a byte, read or unread.
func TestEvents(t *testing.T) {
	l := listen(t, "tcp")
	e := openEvents(t, portOf(l))
	end := func(first, second *net.TCPConn) { first.Close(); io.Copy(io.Discard, second); second.Close() }
	for _, name := range []string{"client first", "server first", "the end unread"} {
		client, server := pair(t, l)
		cookie := onFD(server, ReadSocket).Cookie
		remote := client.LocalAddr().(*net.TCPAddr).AddrPort()
		switch name {
		case "client first":
			end(client, server)
		case "server first":
			end(server, client)
		default:
			client.CloseWrite()
			testutil.Eventually(t, "acknowledged", func() bool { return onFD(client, ReadSocket).State == tcp.FinWait2 })
			end(server, client)
		}
		all, _ := next(t, e, 1)
		got := all[0]
		if got.State != tcp.Close || got.Cookie != cookie || got.Remote != remote || got.Info.Received != 4 || got.Info.Sent < 6 {
			t.Errorf("%s: %+v, want cookie %d, remote address %v", name, got, cookie, remote)
		}
	}
}

// TestLost: if the receive buffer is full, Read reports that events were missed, and later events
// arrive.
func TestLost(t *testing.T) {
	l := listen(t, "tcp")
	e, all := openEvents(t, portOf(l)), openEvents(t, portOf(l))
	unix.SetsockoptInt(e.FD(), unix.SOL_SOCKET, unix.SO_RCVBUF, 0) // the minimum
	const many = 100
	for range many {
		closeOne(t, l)
	}
	next(t, all, many)
	if got, missed := next(t, e, many); !missed || len(got) == 0 {
		t.Errorf("%d events of %d, missed %v", len(got), many, missed)
	}
	want := closeOne(t, l)
	if got, missed := next(t, e, 1); missed || got[0].Cookie != want.Cookie {
		t.Errorf("missed %v, then %+v; want %+v", missed, got, want)
	}
}
