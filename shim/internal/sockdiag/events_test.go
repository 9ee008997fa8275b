package sockdiag

import (
	"io"
	"maps"
	"net"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

func openEvents(t testing.TB, ports []uint16) *Events {
	t.Helper()
	netns.Need(t)
	e, err := OpenEvents(ports)
	must(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}

// wait reads events until done returns true, and returns how many were lost.
func wait(t testing.TB, e *Events, done func() bool, visit func(*tcp.Socket)) (lost int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatal("timeout waiting for events")
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}, 1000); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		some, err := e.Read(visit)
		must(t, err)
		lost += some
	}
	return lost
}

// connectBriefly makes and closes a connection, and returns the socket of the server.
func connectBriefly(t testing.TB, l *net.TCPListener, addr string, serverFirst bool) tcp.Socket {
	t.Helper()
	client, server := pair(t, l, addr)
	say(t, client, server, "ping")
	say(t, server, client, "answer")
	s := known(t, server)
	first, second := client, server
	if serverFirst {
		first, second = server, client
	}
	must(t, first.CloseWrite())
	_, err := io.Copy(io.Discard, second)
	must(t, err)
	must(t, second.Close())
	must(t, first.Close())
	return s
}

// TestEvents tests 300 short connections, closed first by client or server: an event
// each.
func TestEvents(t *testing.T) {
	dual, four := listen(t, "tcp", ":0"), listen(t, "tcp4", "127.0.0.1:0")
	e := openEvents(t, []uint16{portOf(dual), portOf(four)})
	want, got := map[uint64]tcp.Socket{}, map[uint64]tcp.Socket{}
	visit := func(s *tcp.Socket) {
		if _, twice := got[s.Cookie]; twice {
			t.Errorf("a second event of %+v", *s)
		}
		got[s.Cookie] = *s
	}
	lost := 0
	for i := range 300 {
		s := connectBriefly(t, []*net.TCPListener{four, dual, dual}[i%3], []string{"127.0.0.1", "127.0.0.1", "::1"}[i%3], i%2 == 0)
		want[s.Cookie] = s
		some, err := e.Read(visit)
		must(t, err)
		lost += some
	}
	for _, l := range []*net.TCPListener{dual, four} {
		s := known(t, l)
		want[s.Cookie] = s
		l.Close()
	}
	lost += wait(t, e, func() bool { return len(got) >= len(want) }, visit)
	if lost > 0 {
		t.Errorf("%d events were lost", lost)
	}
	for id, w := range want {
		g, found := got[id]
		switch {
		case !found:
			t.Errorf("no event of %+v", w)
		case g.State != tcp.Close || g.Local != w.Local:
			t.Errorf("got %+v\nwant %+v", g, w)
		case w.State != tcp.Listen && (g.Remote != w.Remote || !g.HasInfo || g.Info.Received != 4 || g.Info.Sent < 6):
			t.Errorf("got %+v\nwant %+v", g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}

// TestEventPorts tests the socket filter with up to 300 ports: events of these ports
// alone arrive.
func TestEventPorts(t *testing.T) {
	for _, n := range []int{1, 3, 60, 256, 300} {
		var ports []uint16
		want := map[uint16]int{}
		var all []*net.TCPListener
		for i := range 2 * n {
			l := listen(t, "tcp", ":0")
			all = append(all, l)
			if i%2 == 0 {
				ports = append(ports, portOf(l))
				want[portOf(l)] = 1
			}
		}
		e := openEvents(t, ports)
		last := openEvents(t, nil)
		if !newPortSet(nil, ports).isCoarse() {
			e.ports = nil // so that the kernel filters alone
		}
		for _, l := range all {
			l.Close()
		}
		seen, got := 0, map[uint16]int{}
		wait(t, last, func() bool { return seen >= 2*n }, func(s *tcp.Socket) { seen++ })
		lost, err := e.Read(func(s *tcp.Socket) { got[s.Local.Port()]++ })
		must(t, err)
		if lost > 0 {
			t.Errorf("%d events were lost", lost)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d ports: events of %v, want %v", n, got, slices.Sorted(slices.Values(ports)))
		}
	}
}

// TestLost tests a full receive buffer: Read returns how many events were lost, and later
// events arrive.
func TestLost(t *testing.T) {
	l := listen(t, "tcp", ":0")
	e := openEvents(t, []uint16{portOf(l)})
	all := openEvents(t, []uint16{portOf(l)})
	must(t, unix.SetsockoptInt(e.FD(), unix.SOL_SOCKET, unix.SO_RCVBUF, 0)) // the minimum
	const many = 100
	for range many {
		connectBriefly(t, l, "127.0.0.1", false)
	}
	seen := 0
	wait(t, all, func() bool { return seen >= many }, func(*tcp.Socket) { seen++ })
	got := 0
	lost, err := e.Read(func(*tcp.Socket) { got++ })
	must(t, err)
	if lost == 0 || got+lost != many {
		t.Errorf("%d events lost and %d received, want %d in all", lost, got, many)
	}
	s := connectBriefly(t, l, "127.0.0.1", false)
	var last tcp.Socket
	lost = wait(t, e, func() bool { return last.Cookie != 0 }, func(s *tcp.Socket) { last = *s })
	if lost > 0 || last.Cookie != s.Cookie {
		t.Errorf("%d events lost, the last is %+v; want %+v", lost, last, s)
	}
}

// TestEventsFIN tests Info.Received in events: the FIN of the peer does not count as a
// byte, in any order of closing, read or unread.
func TestEventsFIN(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	e := openEvents(t, []uint16{portOf(l)})
	for name, end := range map[string]func(client, server *net.TCPConn){
		"client first":   func(client, server *net.TCPConn) { client.Close(); io.Copy(io.Discard, server); server.Close() },
		"server first":   func(client, server *net.TCPConn) { server.Close(); io.Copy(io.Discard, client); client.Close() },
		"the end unread": func(client, server *net.TCPConn) { endWrite(t, client); server.Close(); client.Close() },
	} {
		client, server := pair(t, l, "127.0.0.1")
		say(t, client, server, "ping")
		say(t, server, client, "answer")
		end(client, server)
		received := false
		wait(t, e, func() bool { return received }, func(s *tcp.Socket) {
			received = true
			if s.Info.Received != 4 {
				t.Errorf("%s: received %d bytes, want 4: %+v", name, s.Info.Received, *s)
			}
		})
	}
}

// TestEventReset tests the remote addresses in the events of a reset connection and of a
// listener.
func TestEventReset(t *testing.T) {
	l := listen(t, "tcp4", "127.0.0.1:0")
	e := openEvents(t, []uint16{portOf(l)})
	client, server := pair(t, l, "127.0.0.1")
	say(t, client, server, "ping")
	must(t, server.SetLinger(0))
	must(t, server.Close())
	must(t, l.Close())
	var got []string
	wait(t, e, func() bool { return len(got) == 2 }, func(s *tcp.Socket) { got = append(got, s.Remote.String()) })
	slices.Sort(got)
	if want := []string{"0.0.0.0:0", "127.0.0.1:0"}; !slices.Equal(got, want) {
		t.Errorf("remote addresses %v, want %v", got, want)
	}
}

// TestSetPorts: a further port has events from then on, and events that are queued stay.
func TestSetPorts(t *testing.T) {
	first, second := listen(t, "tcp4", "127.0.0.1:0"), listen(t, "tcp4", "127.0.0.1:0")
	e := openEvents(t, []uint16{portOf(first)})
	connectBriefly(t, second, "127.0.0.1", false) // not to be seen
	want := map[uint64]bool{connectBriefly(t, first, "127.0.0.1", false).Cookie: true}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(e.FD()), Events: unix.POLLIN}}, 20_000); err != nil {
		t.Fatal(err)
	}
	must(t, e.SetPorts([]uint16{portOf(second), portOf(first)}))
	for _, l := range []*net.TCPListener{first, second} {
		want[connectBriefly(t, l, "127.0.0.1", true).Cookie] = true
	}
	got := map[uint64]bool{}
	wait(t, e, func() bool { return len(got) >= len(want) }, func(s *tcp.Socket) { got[s.Cookie] = true })
	if !maps.Equal(got, want) {
		t.Errorf("events of %v, want %v", got, want)
	}
}
