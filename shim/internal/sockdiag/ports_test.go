package sockdiag

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestPorts tests Query.Ports, in the kernel's filter and in Dump.
func TestPorts(t *testing.T) {
	c := openConn(t)
	var open []uint16
	for range 400 {
		open = append(open, portOf(listen(t, "tcp4", "127.0.0.1:0")))
	}
	for port := uint16(5000); port < 5010; port++ { // a run of ports
		open = append(open, portOf(listen(t, "tcp", fmt.Sprintf(":%d", port))))
	}
	listeners := Query{States: In(tcp.Listen)}
	for _, n := range []int{1, 2, 3, 60, 256, 390} {
		rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		checkPorts(t, c, open[:n])
	}
	checkPorts(t, c, []uint16{5000})
	checkPorts(t, c, []uint16{5009, 5000, 5001, 5002, 5002, 5000})
	listeners.Ports = []uint16{1, 4999, 5010, 65535}
	if got := dump(t, c, listeners); len(got) != 0 {
		t.Errorf("listeners %+v, want none", got)
	}
	listeners.Ports = nil
	visited := map[uint16]bool{}
	for _, s := range dump(t, c, listeners) {
		visited[s.Local.Port()] = true
	}
	for _, port := range open {
		if !visited[port] {
			t.Errorf("port %d was not visited", port)
		}
	}
}

// checkPorts compares the ports of a query with the ports visited by Dump, and with the
// ports that the kernel sends.
func checkPorts(t *testing.T, c *Conn, ports []uint16) {
	t.Helper()
	q := Query{States: In(tcp.Listen), Ports: ports}
	want := slices.Compact(slices.Sorted(slices.Values(ports)))
	var got []uint16
	for _, s := range dump(t, c, q) {
		got = append(got, s.Local.Port())
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d ports: visited %v, want %v", len(ports), got, want)
	}
	if portSet(want).isCoarse() {
		return
	}
	sent := slices.Sorted(maps.Keys(portsSent(t, q)))
	if !slices.Equal(sent, want) {
		t.Errorf("%d ports: the kernel sends %v, want %v", len(ports), sent, want)
	}
}

// portsSent returns the local ports of all sockets that the kernel sends for q.
func portsSent(t *testing.T, q Query) map[uint16]bool {
	t.Helper()
	sent := map[uint16]bool{}
	for b := rawReply(t, q); len(b) > 0; {
		m, rest, err := nextMessage(b)
		must(t, err)
		var s tcp.Socket
		if m.kind == unix.SOCK_DIAG_BY_FAMILY {
			must(t, decodeSocket(m.payload, &s))
			sent[s.Local.Port()] = true
		}
		b = rest
	}
	return sent
}

// TestAbandonedDump tests a dump after a dump whose visitor panicked.
func TestAbandonedDump(t *testing.T) {
	c := openConn(t)
	for range 300 {
		listen(t, "tcp", ":0")
	}
	q := Query{States: AllStates, Info: true}
	for range 3 {
		func() {
			defer func() { recover() }()
			c.Dump(q, func(*tcp.Socket) { panic("enough") })
		}()
		if !c.replyPending {
			t.Error("the abandoned dump was read to its end")
		}
		if got := dump(t, c, q); len(got) < 300 {
			t.Errorf("%d sockets, want at least 300", len(got))
		}
	}
}

// TestCloseOnExec tests the flag FD_CLOEXEC of both sockets.
func TestCloseOnExec(t *testing.T) {
	c := openConn(t)
	e := openEvents(t, nil)
	for _, fd := range []int{c.fd, e.FD()} {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		must(t, err)
		if flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited", fd)
		}
	}
}
