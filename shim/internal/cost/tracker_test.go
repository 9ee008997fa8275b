package cost

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// kernel is the sockets and counters of a network namespace, as a Tracker is shown them.
type kernel struct {
	*Tracker
	now     time.Time
	sockets []tcp.Socket
	closed  []traffic.Closed
	rest    Rest
	resets  uint64
	err     error // of the counters
}

const every = 50 * time.Millisecond

var (
	start  = time.Unix(1_000_000_000, 0)
	client = netip.MustParseAddr("10.0.0.1")
	local  = netip.MustParseAddr("10.0.0.2")
)

// newKernel returns a kernel in which the ports listen.
func newKernel(ports ...uint16) *kernel {
	k := &kernel{Tracker: New(&traffic.Config{}), now: start}
	k.listen(ports...)
	k.resets = 1000
	k.sample(1)
	return k
}

func (k *kernel) listen(ports ...uint16) {
	for _, port := range ports {
		k.sockets = append(k.sockets, tcp.Socket{State: tcp.Listen, Local: netip.AddrPortFrom(local, port), Cookie: uint64(port)})
	}
}

// The ages of the last bytes received and sent, in milliseconds: a request in flight, one that
// was answered, and one of which the kernel does not say.
var (
	waiting  = [2]time.Duration{5, 500}
	answered = [2]time.Duration{520, 500}
	tied     = [2]time.Duration{500, 500}
)

// connect adds an accepted connection, whose last bytes have these ages.
func (k *kernel) connect(cookie int, ages [2]time.Duration) *tcp.Socket {
	k.sockets = append(k.sockets, tcp.Socket{
		State: tcp.Established, Local: netip.AddrPortFrom(local, 80), Remote: netip.AddrPortFrom(client, uint16(cookie)),
		Cookie: uint64(cookie), Inode: uint32(cookie), HasInfo: true,
		Info: tcp.Info{
			LastReceived: ages[0] * time.Millisecond, LastSent: ages[1] * time.Millisecond, LastAcked: ages[1] * time.Millisecond,
			Received: 100, Sent: 100, Acked: 100, Segments: 2, SentSegments: 2, PureACKs: 1,
		},
	})
	return &k.sockets[len(k.sockets)-1]
}

// sample takes so many samples.
func (k *kernel) sample(times int) {
	for range times {
		k.now = k.now.Add(every)
		for i := range k.closed {
			k.AddClosed(&k.closed[i])
		}
		k.Begin(k.now, k.resets, k.err)
		for i := range k.sockets {
			s := k.sockets[i]
			k.Observe(&s, s.Local.Port() < 1000)
		}
		k.closed = nil
		k.rest.Now = k.now
		k.End(k.rest)
	}
}

// remove removes the sockets with these cookies, without events.
func (k *kernel) remove(cookies ...int) {
	k.sockets = slices.DeleteFunc(k.sockets, func(s tcp.Socket) bool { return slices.Contains(cookies, int(s.Cookie)) })
}

// destroy removes sockets with an event each, a moment after the latest sample.
func (k *kernel) destroy(cookies ...int) {
	for _, s := range k.sockets {
		if slices.Contains(cookies, int(s.Cookie)) {
			if s.State == tcp.Listen {
				s.Remote = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
			}
			s.State = tcp.Close
			s.Inode = 0
			k.closed = append(k.closed, traffic.Closed{Socket: s, At: k.now.Add(10 * time.Millisecond)})
		}
	}
	k.remove(cookies...)
}

// keep shows what the kernel keeps of a connection that the server has closed.
func (k *kernel) keep(cookie int, state tcp.State) {
	k.sockets = append(k.sockets, tcp.Socket{
		State: state, Local: netip.AddrPortFrom(local, 80), Remote: netip.AddrPortFrom(client, uint16(cookie)), Cookie: 1 << 40,
	})
}

// TestCost: what is cut and refused by the end of a server.
func TestCost(t *testing.T) {
	for name, c := range map[string]struct {
		play         func(k *kernel)
		cut, refused int
	}{
		"dies": {func(k *kernel) {
			k.connect(1, waiting)
			k.connect(2, answered)
			k.connect(3, tied)
			k.sample(1)
			k.destroy(80, 1, 2, 3)
			k.keep(1, tcp.TimeWait)
			k.resets += 7
		}, 1, 7},
		"a request never shown by a sample": {func(k *kernel) {
			k.connect(1, waiting)
			k.destroy(80, 1)
			k.keep(1, tcp.FinWait2)
		}, 1, 0},
		"a long response": {func(k *kernel) {
			s := k.connect(1, answered)
			s.Info.NotSent, s.Unsent = 1<<20, 1<<20
			k.sample(1)
			s.Info.Sent, s.Info.SentSegments, s.Info.LastSent = 1<<20, 300, time.Millisecond
			k.destroy(80, 1)
			k.keep(1, tcp.FinWait1)
		}, 1, 0},
		"drains": {func(k *kernel) {
			k.connect(1, waiting)
			k.connect(2, waiting)
			k.sample(1)
			k.destroy(80)
			k.resets += 2
			k.sample(3)
			if k.result.Open != 2 {
				panic(fmt.Sprint("open: ", k.result.Open))
			}
			k.sockets[0].Info.LastSent, k.sockets[0].Info.SentSegments = time.Millisecond, 3
			k.destroy(1)
			k.sample(20)
			k.destroy(2) // killed
			k.keep(2, tcp.TimeWait)
		}, 1, 2},
		"a cut connection that is reset": {func(k *kernel) {
			k.connect(1, waiting)
			k.connect(2, waiting)
			k.sample(1)
			k.destroy(80, 1, 2)
			k.keep(1, tcp.FinWait2)
			k.resets++ // of 2, at once
			k.sample(2)
			k.remove(1 << 40)
			k.resets++ // of 1, by the client's next request
		}, 2, 0},
		"never accepted": {func(k *kernel) {
			s := k.connect(1, waiting)
			s.Inode = 0
			k.sample(1)
			s.Remote = netip.AddrPortFrom(client, 0)
			k.destroy(80, 1)
			k.resets++
		}, 0, 1},
		"connections to servers reset": {func(k *kernel) {
			s := k.connect(1, answered)
			s.Local, s.Remote = netip.AddrPortFrom(local, 5000), netip.AddrPortFrom(client, 0)
			k.destroy(80, 1)
			k.resets++
		}, 0, 0},
		"a proxy's request is answered late": {func(k *kernel) {
			k.connect(1, waiting)
			s := k.connect(2, [2]time.Duration{500, 5})
			s.Local = netip.AddrPortFrom(local, 5000)
			k.sample(1)
			k.destroy(80, 1, 2)
			k.keep(1, tcp.TimeWait)
			k.keep(2, tcp.FinWait2)
			k.sockets[len(k.sockets)-1].Local = netip.AddrPortFrom(local, 5000)
			k.sample(2)
			k.remove(1 << 40)
			k.resets++
		}, 1, 0},
		"clients here": {func(k *kernel) {
			for cookie := range 3 {
				s := k.connect(100+cookie, answered)
				s.Local, s.Remote = netip.AddrPortFrom(client, 5000), netip.AddrPortFrom(client, 0)
			}
			k.destroy(80, 100, 101, 102)
			k.resets += 3
		}, 0, 3},
		"workers end first": {func(k *kernel) {
			k.connect(1, waiting)
			k.sample(1)
			k.destroy(1)
			k.keep(1, tcp.TimeWait)
			k.sample(3)
			k.destroy(80)
		}, 1, 0},
		"events are lost": {func(k *kernel) {
			k.connect(1, waiting)
			k.connect(2, answered)
			k.sample(1)
			k.remove(80, 1, 2)
			k.keep(1, tcp.TimeWait)
			k.rest.Missed = true
		}, 1, 0},
		"another port still listens": {func(k *kernel) {
			k.listen(81)
			s := k.connect(1, waiting)
			s.Local = netip.AddrPortFrom(local, 81)
			k.connect(2, waiting)
			k.sample(1)
			k.destroy(80, 1, 2)
			k.keep(2, tcp.TimeWait)
			k.resets++
		}, 1, 1},
		"returned, and ended again": {func(k *kernel) {
			k.connect(1, waiting)
			k.sample(1)
			k.destroy(80, 1)
			k.resets += 5
			k.sample(2)
			k.listen(80)
			k.sample(1)
			if len(k.result.Returned) != 1 || k.result.Refused != 0 {
				panic(fmt.Sprintf("returned: %+v", k.result))
			}
			k.resets++ // of a client that is late
			k.sample(1)
			k.destroy(80)
			k.resets += 2
		}, 0, 2},
		"a health probe": {func(k *kernel) {
			k.rest.Probes = []traffic.Pattern{{Port: 80, Period: time.Second, Last: k.now}}
			k.sample(1)
			k.destroy(80)
			k.sample(9)
			k.resets += 2 // clients
			k.sample(10)
			k.resets++ // the probe
		}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKernel(80)
			c.play(k)
			k.sample(12)
			r := k.Result()
			if r.Cut() != c.cut || r.Refused != c.refused || r.CutAtLeast != k.rest.Missed {
				t.Errorf("%d cut, %d refused of %+v; want %d and %d", r.Cut(), r.Refused, r, c.cut, c.refused)
			}
			sum := 0
			for _, n := range r.PerSecond {
				sum += n
			}
			if sum != r.Refused {
				t.Errorf("%d refused by second, %d in all", sum, r.Refused)
			}
			if isProbe := name == "a health probe"; isProbe != (r.OfProbes == 1) || len(r.Ends) != 1 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestEndTime: a port ends when its last listener does, and a reset has the time of its sample.
func TestEndTime(t *testing.T) {
	k := newKernel(80)
	k.listen(80)
	k.sockets[1].Cookie = 8080
	k.sample(1)
	k.destroy(80)
	k.sample(1)
	if r := k.Result(); len(r.Ends) > 0 || !slices.Equal(r.Listening, []uint16{80}) {
		t.Errorf("with a listener left: %+v", r)
	}
	ended := k.now.Add(10 * time.Millisecond)
	k.destroy(8080)
	k.sample(30)
	k.resets += 3
	k.sample(5)
	r := k.Result()
	if len(r.Ends) != 1 || !r.Ends[0].At.Equal(ended) || !r.LastRefused.Equal(k.now.Add(-4*every)) || !slices.Equal(r.PerSecond, []int{0, 3}) {
		t.Errorf("%+v, want an end at %v", r, ended)
	}
}

// TestUncounted: without counters nothing is refused, as far as known.
func TestUncounted(t *testing.T) {
	k := newKernel(80)
	k.err = errors.New("no counters")
	k.destroy(80)
	k.resets = 0
	k.sample(2)
	if r := k.Result(); r.Uncounted == nil || r.Refused != 0 {
		t.Errorf("%+v", r)
	}
}
