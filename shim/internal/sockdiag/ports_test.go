package sockdiag

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestPorts: the kernel tells of the ports that were asked for, and of no other.
func TestPorts(t *testing.T) {
	c := openConn(t)
	var open []uint16
	for range 400 {
		open = append(open, portOf(listen(t, "tcp4", "127.0.0.1:0")))
	}
	for port := uint16(5000); port < 5010; port++ { // one run
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
		t.Errorf("nobody is there: %+v", got)
	}
	listeners.Ports = nil
	told := map[uint16]bool{}
	for _, s := range dump(t, c, listeners) {
		told[s.Local.Port()] = true
	}
	for _, port := range open {
		if !told[port] {
			t.Errorf("port %d is missing", port)
		}
	}
}

func checkPorts(t *testing.T, c *Conn, ports []uint16) {
	t.Helper()
	q := Query{States: In(tcp.Listen), Ports: ports}
	want := slices.Compact(slices.Sorted(slices.Values(ports)))
	var got []uint16
	for _, s := range dump(t, c, q) {
		got = append(got, s.Local.Port())
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%d ports: got %v, want %v", len(ports), got, want)
	}
	if portSet(want).runs() > mostSpans {
		return
	}
	kernels := slices.Sorted(maps.Keys(unsorted(t, q)))
	if !slices.Equal(kernels, want) {
		t.Errorf("%d ports: the kernel lets through %v, want %v", len(ports), kernels, want)
	}
}

// unsorted is what the kernel tells, by port, before it is looked at again.
func unsorted(t *testing.T, q Query) map[uint16]bool {
	t.Helper()
	c := openConn(t)
	told := map[uint16]bool{}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		must(t, send(c.fd, appendRequest(nil, 0, family, q, newPortSet(nil, q.Ports)), time.Now()))
		a := answer{sock: &c.sock, visit: func(s *tcp.Socket) { told[s.Local.Port()] = true }}
		for !a.done {
			n, err := receive(c.fd, c.buf, 0, time.Now())
			must(t, err)
			must(t, a.take(c.buf[:n]))
		}
	}
	return told
}

// TestGivenUp: what is left of an answer that nobody read does no harm.
func TestGivenUp(t *testing.T) {
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
		if !c.unread {
			t.Error("the answer was read")
		}
		if got := dump(t, c, q); len(got) < 300 {
			t.Errorf("%d sockets, want at least 300", len(got))
		}
	}
}

// TestCloseOnExec: the command inherits neither socket.
func TestCloseOnExec(t *testing.T) {
	c := openConn(t)
	e := openEvents(t, nil)
	for _, fd := range []int{c.fd, e.FD()} {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if must(t, err); flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited", fd)
		}
	}
}
