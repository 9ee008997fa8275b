package traffic

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestAccepted: the kernel's count makes up for connections that no sample shows. A
// connection that a later sample shows is not counted twice.
func TestAccepted(t *testing.T) {
	tr := New(Config{QuietFor: s(3), Poll: s(1)}, start)
	l := withoutInfo(life{id: 1})
	for second, total := range []int{0, 0, 5, 5, 5, 6, 6, 6} {
		now := s(float64(second))
		tr.Begin(start.Add(now))
		if second >= 3 { // one of the five, accepted late by the program
			sock := l.at(now)
			tr.Observe(&sock)
		}
		rest := Rest{Accepted: total}
		if second > 0 && total == tr.Summary().Accepted {
			rest.Accepted = 0
		}
		tr.End(rest)
	}
	r := tr.Summary()
	if r.Accepted != 6 || r.More || !slices.Equal(r.PerSecond, []int{0, 0, 5, 0, 0, 1, 0, 0}) || r.LastNew != start.Add(s(5)) {
		t.Errorf("%+v", r)
	}
	if tr.Verdict().Settled {
		t.Errorf("settled 2 s after the last connection")
	}
}

// TestOpened: a connection that the kernel has accepted counts as activity until an event
// reports the end.
func TestOpened(t *testing.T) {
	l := answered(3)
	l.id, l.close = 1, s(3.5)
	event := l.closed(s(3.5))
	for name, c := range map[string]struct {
		opened int
		closed []Closed
		want   float64 // LastNew, in seconds from the trigger; 0: no activity
	}{
		"none":                  {0, nil, 0},
		"one, not reported":     {1, nil, 4},
		"one, reported":         {1, []Closed{event}, 3.5},
		"two, one reported":     {2, []Closed{event}, 4},
		"unknown, one reported": {0, []Closed{event}, 3.5},
	} {
		tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(1)}, start)
		for second := range 4 {
			tr.Begin(start.Add(s(float64(second))))
			tr.End(Rest{})
		}
		tr.Begin(start.Add(s(4)))
		tr.End(Rest{Opened: c.opened, Closed: c.closed})
		got := max(tr.Summary().LastNew.Sub(start), 0)
		if quiet := tr.Verdict().Quiet; got != s(c.want) || quiet != (c.want == 0) {
			t.Errorf("%s: the last new connection at %v, quiet %v", name, got, quiet)
		}
	}
}

// TestSegments: segments prolong quiet, not settled, and only while a connection is open
// that may have received the segments.
func TestSegments(t *testing.T) {
	for name, c := range map[string]struct {
		conn  life
		quiet bool
	}{
		"established":     {withoutInfo(life{id: 1, open: s(-9)}), false},
		"half-closed":     {withoutInfo(life{id: 1, open: s(-9), state: tcp.CloseWait}), false},
		"closed by us":    {withoutInfo(life{id: 1, open: s(-9), state: tcp.FinWait2}), true},
		"bytes are known": {life{id: 1, open: s(-9)}, true},
		"none":            {life{id: 1, open: time.Hour}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(1)}, start)
			for second := range 9 {
				at := s(float64(second))
				tr.Begin(start.Add(at))
				if sock := c.conn.at(at); c.conn.open <= at {
					tr.Observe(&sock)
				}
				tr.End(Rest{Segments: true})
			}
			if v := tr.Verdict(); !v.Settled || v.Quiet != c.quiet {
				t.Errorf("%+v, want settled, and quiet %v", v, c.quiet)
			}
		})
	}
}

// TestNewSource: connections of the first sample of another source are not new.
func TestNewSource(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := world{Config: Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}}
		tr := New(w.Config, start)
		l := answered(-5)
		l.id = 7
		w.lives = []life{l}
		w.sample(tr, 0)
		tr.Begin(start.Add(s(0.25)))
		tr.End(Rest{Incomplete: true, NewSource: changed})
		w.lives[0].id = 8 // the new source identifies connections differently
		w.sample(tr, s(0.25))
		if got, want := tr.Summary().Accepted == 0, changed; got != want {
			t.Errorf("new source %v: %d connections accepted", changed, tr.Summary().Accepted)
		}
	}
}

// TestNewSourceUnsettles: a connection that came between the last sample of one source and
// the first of another restarts the silence, until settled too.
func TestNewSourceUnsettles(t *testing.T) {
	w := world{}
	tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
	for now := s(0); now < s(3); now += s(0.25) {
		w.sample(tr, now)
	}
	w.lives = []life{withoutInfo(answered(2.9))}
	w.lives[0].id = 7
	tr.Begin(start.Add(s(3)))
	tr.End(Rest{Incomplete: true, NewSource: true})
	for now := s(3); now < s(6); now += s(0.25) {
		w.sample(tr, now)
		if tr.Verdict().Settled {
			t.Fatalf("settled at %v, though a connection came at 2.9 s", now)
		}
	}
	w.sample(tr, s(6))
	if !tr.Verdict().Settled {
		t.Error("not settled after 3 s")
	}
}

// TestFirstSampleFails: connections of the first complete sample are not new, if samples
// before were incomplete.
func TestFirstSampleFails(t *testing.T) {
	for _, failed := range []int{0, 1, 2} {
		w := world{lives: []life{answered(-5)}, Config: Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}}
		w.lives[0].id = 7
		samples := 0
		w.incomplete = func(time.Duration) bool {
			samples++
			return samples <= failed
		}
		tr := New(w.Config, start)
		for i := range failed + 2 {
			w.sample(tr, time.Duration(i)*w.Poll)
		}
		if r := tr.Summary(); r.Accepted != 0 || !r.LastNew.IsZero() {
			t.Errorf("%d failed: %+v", failed, r)
		}
	}
}

// TestLateEnds: a connection whose end is reported after a sample without the connection
// is counted once.
func TestLateEnds(t *testing.T) {
	for _, late := range []float64{0, 0.1, 0.2, 0.24} {
		w := world{events: true, late: s(late), lives: every(s(1), s(0.1), s(9), life{close: s(0.3), moves: []move{{s(0.001), 77}, {s(0.2), -100}}})}
		_, tr := w.until(s(10), stuck)
		if r := tr.Summary(); r.Accepted != 9 || r.LastNew.Sub(start) > s(8.26) || len(r.Patterns) != 1 {
			t.Errorf("late by %v s: %+v", late, r)
		}
	}
}

// TestOverlap: of equal short connections, the one that came last need not end last.
func TestOverlap(t *testing.T) {
	request := []move{{0, 77}}
	slow := every(s(60), s(2.5), s(3), life{close: s(1.8), moves: request})
	fast := every(s(60), s(4), s(5), life{close: s(0.1), moves: request})
	for _, events := range []bool{false, true} {
		w := world{events: events, lives: append(slow, fast...)}
		at, tr := w.until(s(20), settled)
		if last := tr.Summary().LastNew.Sub(start); last != s(4) || at != s(7) {
			t.Errorf("events %v: LastNew is %v, settled at %v", events, last, at)
		}
	}
}

// TestReset: a connection reset by the program counts, though the event has only the
// peer's address. A closed listener does not count.
func TestReset(t *testing.T) {
	for _, seen := range []bool{false, true} {
		w := world{}
		tr := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
		l := answered(-5)
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
