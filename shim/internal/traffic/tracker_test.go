package traffic

import (
	"net/netip"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestReset: a connection reset by the program counts, though the event has only the
// peer's address. A closed listener does not count.
func TestReset(t *testing.T) {
	for _, seen := range []bool{false, true} {
		w := world{}
		tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
		l := parseWorld("at=-5 answered").lives[0]
		l.id = 7
		if seen {
			w.lives = []life{l}
		}
		w.sample(tr, 0)
		sock := l.at(s(1))
		sock.State, sock.Unsent = tcp.Close, 65538
		sock.Info = tcp.Info{LastReceived: s(1e6)}
		var closed []Closed
		for _, end := range []string{"0.0.0.0:0", "[::]:0", "10.0.0.1:0"} {
			sock.Remote = netip.MustParseAddrPort(end)
			closed = append(closed, Closed{sock, start.Add(s(1))})
		}
		w.lives = nil
		w.sample(tr, s(1), closed...)
		r := tr.Summary()
		if (r.Accepted == 1) == seen || !r.LastByte.Equal(start.Add(s(1))) || tr.Verdict().Quiet {
			t.Errorf("seen before %v: %+v", seen, r)
		}
	}
}

// TestNothingAllocated: a sample allocates no memory for known connections.
func TestNothingAllocated(t *testing.T) {
	w := world{}
	for i := range 1000 {
		l := parseWorld("at=-5 answered").lives[0]
		l.id, l.shown.withoutInfo = uint64(i+1), i%2 == 0
		w.lives = append(w.lives, l)
	}
	tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
	var socks []tcp.Socket
	for i := range w.lives {
		socks = append(socks, w.lives[i].at(0))
		socks[i].Cookie *= uint64(i % 3) // a third has no cookie
	}
	sample := func() {
		tr.Begin(start)
		for i := range socks {
			tr.Observe(&socks[i])
		}
		tr.End(Rest{})
		tr.Verdict()
	}
	sample()
	if n := testing.AllocsPerRun(10, sample); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
