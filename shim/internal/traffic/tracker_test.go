package traffic

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// answered is a connection that has had an answer and is kept alive.
func answered(at float64) life {
	return life{open: s(at), moves: []move{{s(at), 100}, {s(at + 0.01), -200}}}
}

// TestVerdicts has the pitfalls of waiting for silence, by name. Where want is the
// limit of 60 s, the condition never held.
func TestVerdicts(t *testing.T) {
	const never = 60 * time.Second
	request := life{close: s(0.05), moves: []move{{s(0), 100}, {s(0.01), -200}}}
	slow := life{open: s(-5), moves: []move{{s(-5), 100}, {s(-4), -200}, {s(-1), 100}, {s(9), -200}}}
	for name, c := range map[string]struct {
		world
		cond func(Verdict) bool
		want time.Duration // one poll more is as good
	}{
		"nothing at all":                           {world{}, drained, s(3)},
		"requests before the trigger only":         {world{lives: every(s(0.1), s(-5), 0, request)}, drained, s(3)},
		"requests until a while after":             {world{lives: every(s(0.1), s(-5), s(4), request)}, quiet, s(6.5)},
		"the same, seen by events":                 {world{lives: every(s(0.1), s(-5), s(4), request), events: true}, quiet, s(7)},
		"idle keep-alive, quiet":                   {world{lives: []life{answered(-5), answered(-4)}}, quiet, s(3)},
		"idle keep-alive, drained":                 {world{lives: []life{answered(-5), answered(-4)}}, drained, never},
		"preconnected, nothing sent":               {world{lives: []life{{open: s(-5)}}}, quiet, s(3)},
		"slow request on a kept-alive one":         {world{lives: []life{slow}}, quiet, s(12)},
		"first request, slow":                      {world{lives: []life{{open: s(-1), moves: []move{{s(-1), 100}, {s(9), -100}}}}}, quiet, s(12)},
		"slow, but for too long":                   {world{lives: []life{slow}, Config: Config{MaxSilence: s(5)}}, quiet, s(4)},
		"settled does not wait for it":             {world{lives: []life{slow}}, settled, s(3)},
		"receive-only":                             {world{lives: []life{{open: s(-100), moves: []move{{s(-2), 100}}}}}, quiet, s(28)},
		"HTTP/2: a last WINDOW_UPDATE":             {world{lives: []life{{open: s(-100), moves: []move{{s(-9), 100}, {s(-8), -500}, {s(-7), 13}}}}}, quiet, s(23)},
		"a WebSocket that talks, settled":          {world{lives: []life{talking(60)}}, settled, s(3)},
		"a WebSocket that talks, quiet":            {world{lives: []life{talking(20)}}, quiet, s(23)},
		"a WebSocket, drained":                     {world{lives: []life{talking(20)}}, drained, never},
		"a download: sent only":                    {world{lives: []life{{open: s(-9), moves: []move{{s(-9), 100}, {s(5), -100000}}}}}, quiet, s(8)},
		"unsent bytes of an orphan":                {world{lives: []life{{open: s(-9), close: s(6), state: tcp.FinWait1, unsent: 9, moves: []move{{s(-9), 9}, {s(-8), -9}}}}}, quiet, s(9)},
		"half-closed, nothing queued":              {world{lives: []life{{open: s(-99), state: tcp.CloseWait, moves: []move{{s(-9), 9}}}}}, drained, s(3)},
		"TIME_WAIT":                                {world{lives: []life{{open: s(1), state: tcp.TimeWait}}}, drained, s(3)},
		"a handshake":                              {world{lives: []life{{open: s(1), close: s(5), state: tcp.SynRecv}}}, settled, s(7.75)},
		"waiting to be accepted":                   {world{queue: func(now time.Duration) uint32 { return map[bool]uint32{now < s(5): 1}[true] }}, settled, s(7.75)},
		"ignored port":                             {world{lives: every(s(0.1), 0, s(50), life{port: 81, close: s(0.05)}), events: true, Config: Config{IgnorePorts: []uint16{81}}}, drained, s(3)},
		"ignored peer":                             {world{lives: every(s(0.1), 0, s(50), request), events: true, Config: Config{IgnorePeers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}}}, drained, s(3)},
		"a look that sees nothing":                 {world{blind: func(now time.Duration) bool { return true }}, settled, never},
		"blind for a while":                        {world{blind: func(now time.Duration) bool { return now > s(1) && now < s(20) }}, settled, s(20)},
		"no times: idle":                           {world{lives: []life{untimed(answered(-5))}}, quiet, s(3)},
		"no times: waiting for the program":        {world{lives: []life{{open: s(-5), untimed: true, unread: 7}}}, quiet, s(30)},
		"probes every 1 s":                         {world{lives: probes(1), events: true, Config: Config{IgnoreProbes: true}}, quiet, s(3)},
		"probes every 1 s, no events":              {world{lives: probes(1), Config: Config{IgnoreProbes: true}}, quiet, s(3)},
		"probes every 5 s":                         {world{lives: probes(5), events: true, Config: Config{IgnoreProbes: true}}, quiet, s(3)},
		"probes every 10 s":                        {world{lives: probes(10), events: true, Config: Config{IgnoreProbes: true}}, quiet, s(3)},
		"probes every 1 s, looks that lag":         {world{lives: probes(1), events: true, lag: s(0.004), Config: Config{IgnoreProbes: true}}, quiet, s(3)},
		"probes every 5 s, looks that lag":         {world{lives: probes(5), events: true, lag: s(0.007), Config: Config{IgnoreProbes: true, QuietFor: s(6), Poll: s(0.5)}}, quiet, s(15)},
		"an end that is told of late":              {world{lives: []life{{open: s(-5), close: s(5), moves: answered(-5).moves}}, events: true, late: s(0.2)}, drained, s(5.25)},
		"an end that is never told of":             {world{lives: []life{{open: s(-5), close: s(5), moves: answered(-5).moves, unreported: true}}, events: true}, drained, s(8)},
		"probes every 1 s, seen, and told of late": {world{lives: every(s(1), 0, s(60), life{close: s(0.3), moves: []move{{s(0.001), 77}, {s(0.2), -100}}}), events: true, late: s(0.2), Config: Config{IgnoreProbes: true}}, quiet, s(3.5)},
		"probes every 1 s, unless told so":         {world{lives: probes(1), events: true}, quiet, never},
		"probes and real ones of that peer":        {world{lives: append(probes(1), every(s(0.3), 0, s(5), request)...), events: true, Config: Config{IgnoreProbes: true}}, quiet, s(8)},
		"real ones that look like the probes":      {world{lives: append(probes(1), everyProbe(0.31, 0.13, 8)...), events: true, Config: Config{IgnoreProbes: true}}, quiet, s(11)},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cond == nil {
				t.Skip()
			}
			if got, _ := c.until(never, c.cond); got < c.want || got > c.want+2*c.Poll {
				t.Errorf("after %v, want %v", got, c.want)
			}
		})
	}
}

// talking is a WebSocket on which somebody says something every second.
func talking(until float64) life {
	l := life{open: s(-100), moves: []move{{s(-100), 100}, {s(-99), -100}}}
	for at := -10.0; at <= until; at++ {
		l.moves = append(l.moves, move{s(at), 5}, move{s(at) + s(0.001), -5})
	}
	return l
}

func untimed(l life) life {
	l.untimed = true
	return l
}

// probes is a health probe every so many seconds.
func probes(period float64) []life { return everyProbe(period, 0, 60) }

func everyProbe(period, from, to float64) []life {
	return every(s(period), s(from), s(to), life{close: s(0.004), moves: []move{{s(0.001), 77}, {s(0.002), -100}}})
}

// TestStuck: nothing is accepted and nothing moves, though somebody waits. What
// moves, or is served, is not stuck.
func TestStuck(t *testing.T) {
	full := func(time.Duration) uint32 { return 5 }
	waiting := life{open: s(-3), accepted: -1, moves: []move{{s(-3), 100}}, unread: 100}
	const never = 60 * time.Second
	for name, c := range map[string]struct {
		world
		want time.Duration
	}{
		"a hung program":                      {world{queue: full}, s(10)},
		"with a request until given up":       {world{queue: full, lives: []life{waiting}}, s(27)},
		"with one given up before":            {world{queue: full, lives: []life{waiting}, Config: Config{MaxSilence: s(9.5)}}, s(10)},
		"without times, nobody accepted":      {world{queue: full, lives: []life{untimed(waiting)}, Config: Config{MaxSilence: s(5)}}, s(10)},
		"without times, one accepted":         {world{queue: full, lives: []life{untimed(waiting), untimed(answered(-5))}, Config: Config{MaxSilence: s(5)}}, never},
		"whose short ones come and go unseen": {world{queue: full, lives: every(s(1.1), 0, s(20), life{accepted: -1, close: s(0.4), unread: 9})}, s(30)},
		"that moves a byte meanwhile":         {world{queue: full, lives: []life{waiting, {open: s(-3), moves: []move{{s(-3), 9}, {s(6), -9}}}}, Config: Config{MaxSilence: s(8)}}, s(16)},
		"beside an idle one, in jiffies":      {world{queue: full, lives: []life{{open: s(-9), moves: answered(-9).moves, blurred: true}}}, s(10)},
		"that still answers":                  {world{queue: full, lives: []life{talking(20)}}, s(30)},
		"a queue that is emptied":             {world{queue: func(now time.Duration) uint32 { return map[bool]uint32{now < s(8): 5}[true] }}, never},
		"one that accepts":                    {world{queue: full, lives: every(s(5), 0, s(20), life{close: s(100)})}, s(25)},
		"one whose short ones are served":     {world{queue: full, events: true, lives: everyProbe(1.1, 0, 20)}, s(30)},
		"a long wait for silence":             {world{queue: full, Config: Config{QuietFor: s(15)}}, s(15)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := c.until(never, stuck); got < c.want || got > c.want+s(0.5) {
				t.Errorf("after %v, want %v", got, c.want)
			}
		})
	}
}

// TestReport: what is told of a hold.
func TestReport(t *testing.T) {
	w := world{events: true, lives: append(everyProbe(1, 0.5, 10), answered(-3), answered(2.2),
		life{open: s(-9), moves: []move{{s(-9), 9}}})}
	_, j := w.until(s(10), drained)
	r := j.Summary()
	want := Pattern{Peer: netip.MustParseAddr("10.0.0.1"), Port: 80, Received: 77, Period: time.Second}
	if len(r.Patterns) != 1 || r.Patterns[0] != want {
		t.Errorf("patterns %v, want %v", r.Patterns, want)
	}
	if r.More {
		t.Error("as if some were lost")
	}
	if j.MarkMissed(start); !j.Summary().More {
		t.Error("as if none were lost")
	}
	if r.Accepted != 11 || r.Open != 3 || r.InFlight != 1 || r.GivenUp != 0 {
		t.Errorf("%+v", r)
	}
	if last := r.LastNew.Sub(start); last < s(9.5) || last > s(9.51) {
		t.Errorf("the last new one at %v", last)
	}
	if got := r.PerSecond; !slices.Equal(got, []int{1, 1, 2, 1, 1, 1, 1, 1, 1, 1}) {
		t.Errorf("in each second: %v", got)
	}
}

// TestCounted: the kernel's count makes up for connections that no sample sees, and
// counts none twice that a later sample does see.
func TestCounted(t *testing.T) {
	j := New(Config{QuietFor: s(3), Poll: s(1)}, start)
	l := life{id: 1, untimed: true}
	for second, total := range []int{0, 0, 5, 5, 5, 6, 6, 6} {
		now := start.Add(s(float64(second)))
		j.Begin(now)
		if second >= 3 { // one of the five, accepted by the program only now
			sock := l.at(s(float64(second)))
			j.Observe(&sock)
		}
		if total > j.Accepted() {
			j.Counted(now, total)
		}
		j.End(true)
	}
	r := j.Summary()
	if r.Accepted != 6 || r.More || !slices.Equal(r.PerSecond, []int{0, 0, 5, 0, 0, 1, 0, 0}) || r.LastNew != start.Add(s(5)) {
		t.Errorf("%+v", r)
	}
	if v := j.Verdict(); v.Settled {
		t.Errorf("settled 2 s after the last connection")
	}
}

// TestSegments: segments that nobody has seen prolong quiet, not settled, and only while
// there is an open connection that they may have come on.
func TestSegments(t *testing.T) {
	for name, c := range map[string]struct {
		open  life
		quiet bool
	}{
		"established":     {life{id: 1, open: s(-9), untimed: true}, false},
		"half-closed":     {life{id: 1, open: s(-9), untimed: true, state: tcp.CloseWait}, false},
		"closed by us":    {life{id: 1, open: s(-9), untimed: true, state: tcp.FinWait2}, true},
		"bytes are known": {life{id: 1, open: s(-9)}, true},
		"none":            {life{id: 1, open: time.Hour}, true},
	} {
		t.Run(name, func(t *testing.T) {
			j := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(1)}, start)
			for second := range 9 {
				at := s(float64(second))
				j.Begin(start.Add(at))
				if sock := c.open.at(at); c.open.open <= at {
					j.Observe(&sock)
				}
				j.Segments(start.Add(at))
				j.End(true)
			}
			if v := j.Verdict(); !v.Settled || v.Quiet != c.quiet {
				t.Errorf("%+v, want settled, and quiet %v", v, c.quiet)
			}
		})
	}
}

// TestLateEnds: what is told of after a look has missed it is counted once.
func TestLateEnds(t *testing.T) {
	for _, late := range []float64{0, 0.1, 0.2, 0.24} {
		w := world{events: true, late: s(late), lives: every(s(1), s(0.1), s(9), life{close: s(0.3), moves: []move{{s(0.001), 77}, {s(0.2), -100}}})}
		_, j := w.until(s(10), stuck)
		if r := j.Summary(); r.Accepted != 9 || r.LastNew.Sub(start) > s(8.26) || len(r.Patterns) != 1 {
			t.Errorf("late by %v s: %+v", late, r)
		}
	}
}

// TestInFlight has the measured cases, and the ties of jiffies.
func TestInFlight(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	info := func(sent, received, acked int, in, out uint64) tcp.Info {
		return tcp.Info{LastSent: ms(sent), LastReceived: ms(received), LastAcked: ms(acked), Received: in, Sent: out}
	}
	first := info(100, 100, 100, 8, 4)
	first.Segments = 1
	probed := info(5000, 5000, 500, 8, 4)
	probed.Segments, probed.PureACKs = 1, 2
	tie := func(bare uint32, at, acked int, prompt bool) tcp.Info {
		i := info(at, at, acked, 8, 4)
		i.Segments, i.PureACKs, i.PingPong = 2, bare, prompt
		return i
	}
	for name, c := range map[string]struct {
		sock tcp.Socket
		want bool
	}{
		"preconnected":               {tcp.Socket{State: tcp.Established, Info: info(1504, 1504, 1504, 0, 0)}, false},
		"answered":                   {tcp.Socket{State: tcp.Established, Info: info(1504, 1508, 1504, 4, 4)}, false},
		"first request":              {tcp.Socket{State: tcp.Established, Info: info(1004, 1004, 1004, 4, 0)}, true},
		"second request":             {tcp.Socket{State: tcp.Established, Info: info(1004, 700, 700, 8, 4)}, true},
		"answered in the same jiffy": {tcp.Socket{State: tcp.Established, Info: info(100, 100, 96, 4, 4)}, false},
		"asked in the same jiffy":    {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, false)}, true},
		"the same, read in between":  {tcp.Socket{State: tcp.Established, Info: tie(2, 5000, 5000, true)}, true},
		"without quick acks":         {tcp.Socket{State: tcp.Established, Info: tie(1, 5000, 5000, false)}, true},
		"answered, and acknowledged": {tcp.Socket{State: tcp.Established, Info: tie(1, 5000, 5000, true)}, false},
		"not yet acknowledged":       {tcp.Socket{State: tcp.Established, Info: tie(1, 700, 700, true)}, true},
		"acknowledged, who knows":    {tcp.Socket{State: tcp.Established, Info: tie(tcp.PureACKsUnknown, 5000, 5000, true)}, true},
		"waits, and is probed":       {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, false)}, true},
		"idle, and is probed":        {tcp.Socket{State: tcp.Established, Info: tie(3, 5000, 500, true)}, false},
		"the first one, probed":      {tcp.Socket{State: tcp.Established, Info: probed}, false},
		"the first one, nearby":      {tcp.Socket{State: tcp.Established, Info: first}, false},
		"unread":                     {tcp.Socket{State: tcp.Established, Unread: 1, Info: info(1, 2, 1, 4, 4)}, true},
		"unsent":                     {tcp.Socket{State: tcp.Established, Unsent: 1, Info: info(1, 2, 1, 4, 4)}, true},
		"half-closed":                {tcp.Socket{State: tcp.CloseWait, Info: info(100, 1, 1, 4, 4)}, false},
		"half-closed, unsent":        {tcp.Socket{State: tcp.CloseWait, Unsent: 5, Info: info(1, 100, 1, 4, 4)}, true},
		"a listener's queue":         {tcp.Socket{State: tcp.Listen, Unread: 5}, false},
	} {
		c.sock.HasInfo = true
		if got := InFlight(&c.sock, 1); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestInFlightWithoutQuickAcks: where the program has turned off the kernel's first
// acknowledgement, the one that there is belongs to a request that waits.
func TestInFlightWithoutQuickAcks(t *testing.T) {
	s := func(cookie uint64, bare uint32) *tcp.Socket {
		at := 5 * time.Second
		return &tcp.Socket{State: tcp.Established, Cookie: cookie, HasInfo: true,
			Info: tcp.Info{LastSent: at, LastReceived: at, LastAcked: at, Received: 8, Sent: 4, Segments: 2, PureACKs: bare, PingPong: true}}
	}
	for name, c := range map[string]struct {
		seen []*tcp.Socket
		want int
	}{
		"all answered":            {[]*tcp.Socket{s(1, 1), s(2, 1)}, 0},
		"one waits":               {[]*tcp.Socket{s(1, 1), s(2, 2)}, 1},
		"turned off":              {[]*tcp.Socket{s(1, 0), s(2, 0)}, 0},
		"turned off, one waits":   {[]*tcp.Socket{s(1, 0), s(2, 1)}, 1},
		"the other way round":     {[]*tcp.Socket{s(2, 1), s(1, 0)}, 1},
		"one that has had to":     {[]*tcp.Socket{s(1, 3)}, 1},
		"a kernel that is silent": {[]*tcp.Socket{s(1, tcp.PureACKsUnknown)}, 1},
	} {
		j := New(Config{QuietFor: time.Second, MaxSilence: time.Minute}, time.Unix(0, 0))
		for look := range 2 { // by the second one it is known
			j.Begin(time.Unix(int64(look), 0))
			for _, s := range c.seen {
				j.Observe(s)
			}
			j.End(true)
		}
		if got := j.Summary().InFlight; got != c.want {
			t.Errorf("%s: %d in flight, want %d", name, got, c.want)
		}
	}
}

// TestMonotone: more patience never ends earlier, and neither does more traffic
// or a look that fails.
func TestMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dice := func(n float64) time.Duration { return time.Duration(r.Float64()*n*100) * 10 * time.Millisecond }
	for range 2000 {
		var lives []life
		for range r.IntN(6) {
			l := life{open: dice(12) - s(6), port: 80}
			for at := l.open; r.IntN(3) > 0; at += dice(3) + s(0.01) {
				l.moves = append(l.moves, move{at, 100 - 200*r.IntN(2)})
			}
			if r.IntN(2) == 0 {
				l.close = max(l.open, 0) + s(0.01) + dice(8)
			}
			lives = append(lives, l)
		}
		base := world{lives: lives, events: true, Config: Config{QuietFor: s(1) + dice(3), MaxSilence: s(5) + dice(5)}}
		for _, cond := range []func(Verdict) bool{settled, quiet, drained} {
			first, _ := base.until(s(60), cond)
			patient, lasting, blind := base, base, base
			patient.QuietFor += dice(2)
			lasting.MaxSilence += dice(5)
			blind.blind = func(now time.Duration) bool { return now > first-s(2) && now < first }
			for name, w := range map[string]*world{"quiet-for": &patient, "max-silence": &lasting, "blind": &blind} {
				if got, _ := w.until(s(60), cond); got < first {
					t.Fatalf("%s: %v instead of %v; %+v", name, got, first, base)
				}
			}
		}
		// and each condition implies those before it
		_, j := base.until(s(60), func(v Verdict) bool { return v.Drained && !v.Quiet || v.Quiet && !v.Settled })
		if v := j.Verdict(); v.Drained && !v.Quiet || v.Quiet && !v.Settled {
			t.Fatalf("%+v; %+v", v, base)
		}
	}
}

// TestNothingAllocated: a look costs nothing for connections that stay.
func TestNothingAllocated(t *testing.T) {
	w := world{}
	for i := range 1000 {
		l := answered(-5)
		l.id, l.untimed = uint64(i+1), i%2 == 0
		w.lives = append(w.lives, l)
	}
	j := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
	var socks []tcp.Socket
	for i := range w.lives {
		socks = append(socks, w.lives[i].at(0))
		socks[i].Cookie *= uint64(i % 3 / 1) // some are known by their ends
	}
	look := func() {
		j.Begin(start)
		for i := range socks {
			j.Observe(&socks[i])
		}
		j.End(true)
		j.Verdict()
	}
	look()
	if n := testing.AllocsPerRun(10, look); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestReset: a connection that the program has reset counts, though all that is told
// of it in the end is where it came from; a listener that is closed does not.
func TestReset(t *testing.T) {
	for _, seen := range []bool{false, true} {
		w := world{}
		j := New(Config{QuietFor: s(3), MaxSilence: s(30), Poll: s(0.25)}, start)
		l := answered(-5)
		l.id = 7
		if seen {
			w.lives = []life{l}
		}
		w.look(j, 0)
		sock := l.at(s(1))
		sock.State, sock.Unsent = tcp.Close, 65538
		sock.Info = tcp.Info{LastReceived: s(1e6)}
		for _, end := range []string{"0.0.0.0:0", "[::]:0", "10.0.0.1:0"} {
			sock.Remote = netip.MustParseAddrPort(end)
			j.Closed(start.Add(s(1)), &sock)
		}
		w.lives = nil
		w.look(j, s(1))
		r := j.Summary()
		if (r.Accepted == 1) == seen || !r.LastByte.Equal(start.Add(s(1))) || j.Verdict().Quiet {
			t.Errorf("%+v", r)
		}
	}
}
