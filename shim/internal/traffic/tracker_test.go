package traffic

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// never is the limit of simulated time: the condition is not met before.
const never = 60 * time.Second

var (
	request     = life{close: s(0.05), moves: []move{{s(0), 100}, {s(0.01), -200}}}
	slowUpload  = life{open: s(-5), moves: []move{{s(-5), 1448}, {s(-5), 1448}, {s(-5), 1448}, {s(-5), 1448}, {s(-4.9), 900}, {s(9), -200}}}
	slowRequest = life{open: s(-5), moves: []move{{s(-5), 100}, {s(-4), -200}, {s(-1), 100}, {s(9), -200}}}
)

// verdictCases have the pitfalls of waiting for silence, by name.
var verdictCases = map[string]struct {
	world
	cond func(Verdict) bool
	want time.Duration // up to two intervals more are as good
}{
	"nothing at all":                            {world{}, drained, s(3)},
	"requests before the trigger only":          {world{lives: every(s(0.1), s(-5), 0, request)}, drained, s(3)},
	"requests until a while after":              {world{lives: every(s(0.1), s(-5), s(4), request)}, quiet, s(6.5)},
	"requests until a while after, by events":   {world{lives: every(s(0.1), s(-5), s(4), request), events: true}, quiet, s(7)},
	"idle keep-alive, quiet":                    {world{lives: []life{answered(-5), answered(-4)}}, quiet, s(3)},
	"idle keep-alive, drained":                  {world{lives: []life{answered(-5), answered(-4)}}, drained, never},
	"preconnected, nothing sent":                {world{lives: []life{{open: s(-5)}}}, quiet, s(3)},
	"slow request on a kept-alive connection":   {world{lives: []life{slowRequest}}, quiet, s(12)},
	"first request, slow":                       {world{lives: []life{{open: s(-1), moves: []move{{s(-1), 100}, {s(9), -100}}}}}, quiet, s(12)},
	"first request, slow, in many segments":     {world{lives: []life{slowUpload}}, quiet, s(12)},
	"slow, beyond MaxSilence":                   {world{lives: []life{slowRequest}, Config: Config{MaxSilence: s(5)}}, quiet, s(5)},
	"slow, until settled":                       {world{lives: []life{slowRequest}}, settled, s(3)},
	"receive-only":                              {world{lives: []life{{open: s(-100), moves: []move{{s(-2), 100}}}}}, quiet, s(30)},
	"HTTP/2: a last WINDOW_UPDATE":              {world{lives: []life{{open: s(-100), moves: []move{{s(-9), 100}, {s(-8), -500}, {s(-7), 13}}}}}, quiet, s(30)},
	"a busy WebSocket, settled":                 {world{lives: []life{webSocket(60)}}, settled, s(3)},
	"a busy WebSocket, quiet":                   {world{lives: []life{webSocket(20)}, Config: Config{Probes: CountProbes}}, quiet, s(23)},
	"a WebSocket, drained":                      {world{lives: []life{webSocket(20)}}, drained, never},
	"a download: sent only":                     {world{lives: []life{{open: s(-9), moves: []move{{s(-9), 100}, {s(5), -100000}}}}}, quiet, s(8)},
	"unsent bytes of an orphan":                 {world{lives: []life{{open: s(-9), close: s(6), state: tcp.FinWait1, unsent: 9, moves: []move{{s(-9), 9}, {s(-8), -9}}}}}, quiet, s(9)},
	"half-closed, nothing queued":               {world{lives: []life{{open: s(-99), state: tcp.CloseWait, moves: []move{{s(-9), 9}}}}}, drained, s(30)},
	"TIME_WAIT":                                 {world{lives: []life{{open: s(1), state: tcp.TimeWait}}}, drained, s(3)},
	"a handshake":                               {world{lives: []life{{open: s(1), close: s(5), state: tcp.SynRecv}}}, settled, s(3)},
	"waiting to be accepted":                    {world{queue: func(now time.Duration) uint32 { return map[bool]uint32{now < s(5): 1}[true] }}, settled, s(7.75)},
	"ignored port":                              {world{lives: every(s(0.1), 0, s(50), life{port: 81, close: s(0.05)}), events: true, Config: Config{IgnorePorts: []uint16{81}}}, drained, s(3)},
	"ignored peer":                              {world{lives: every(s(0.1), 0, s(50), request), events: true, Config: Config{IgnorePeers: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}}}, drained, s(3)},
	"incomplete samples":                        {world{incomplete: func(now time.Duration) bool { return true }}, settled, never},
	"incomplete for a while":                    {world{incomplete: func(now time.Duration) bool { return now > s(1) && now < s(20) }}, settled, s(20)},
	"no tcp_info: idle":                         {world{lives: []life{withoutInfo(answered(-5))}}, quiet, s(3)},
	"no tcp_info: waiting for the program":      {world{lives: []life{{open: s(-5), shown: shown{withoutInfo: true}, unread: 7}}}, quiet, s(30)},
	"probes every 1 s":                          {world{lives: probing(1), events: true, Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"probes every 1 s, no events":               {world{lives: probing(1), Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"probes every 5 s":                          {world{lives: probing(5), events: true, Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"probes every 10 s":                         {world{lives: probing(10), events: true, Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"probes every 1 s, samples that lag":        {world{lives: probing(1), events: true, lag: s(0.004), Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"probes every 5 s, samples that lag":        {world{lives: probing(5), events: true, lag: s(0.007), Config: Config{Probes: IgnoreProbes, QuietFor: s(6), Poll: s(0.5)}}, quiet, s(15)},
	"an end reported late":                      {world{lives: []life{{open: s(-5), close: s(5), moves: answered(-5).moves}}, events: true, late: s(0.2)}, drained, s(5.25)},
	"an end never reported":                     {world{lives: []life{{open: s(-5), close: s(5), moves: answered(-5).moves, shown: shown{unreported: true}}}, events: true}, drained, s(8)},
	"probes every 1 s, seen, and reported late": {world{lives: every(s(1), 0, s(60), life{close: s(0.3), moves: []move{{s(0.001), 77}, {s(0.2), -100}}}), events: true, late: s(0.2), Config: Config{Probes: IgnoreProbes}}, quiet, s(3.5)},
	"a SYN that nobody completes":               {world{lives: []life{{open: s(-9), state: tcp.SynRecv, vanished: s(-8)}}}, drained, s(3)},
	"a SYN just now":                            {world{lives: []life{{open: s(2), close: s(6), state: tcp.SynRecv}}}, drained, s(3)},
	"vanished before":                           {world{lives: []life{{open: s(-9), moves: answered(-9).moves, vanished: s(-8)}}}, drained, s(5.6)},
	"vanished just before":                      {world{lives: []life{{open: s(-9), moves: answered(-0.1).moves, vanished: s(-0.1)}}}, drained, s(13.5)},
	"vanished":                                  {world{lives: []life{{open: s(-9), moves: answered(2).moves, vanished: s(2)}}}, quiet, s(15.6)},
	"half-closed, waits":                        {world{lives: []life{{open: s(-9), state: tcp.CloseWait, moves: []move{{s(-9), 9}, {s(9), -9}}}}}, quiet, s(12)},
	"half-closed, answered":                     {world{lives: []life{{open: s(-9), state: tcp.CloseWait, moves: answered(-9).moves}}}, drained, s(3)},
	"a log":                                     {world{lives: []life{oneWay(-100, 10, 60)}}, quiet, never},
	"a log that has ended":                      {world{lives: []life{oneWay(-100, 10, -8)}}, quiet, s(30)},
	"a POST in parts, then work":                {world{lives: []life{inParts(0.5, 5, 1, 10)}}, quiet, s(17.5)},
	"a POST in parts before, then work":         {world{lives: []life{inParts(-5, 8, 0.6, 10)}}, quiet, s(12.2)},
	"preconnected, then a large request":        {world{lives: []life{preconnected(-30, 1, 12)}}, quiet, s(15)},
	"preconnected before, a large request":      {world{lives: []life{preconnected(-30, -2, 9)}}, quiet, s(12)},
	"a stream of messages, and WINDOW_UPDATEs":  {world{lives: []life{serverStream(1, 13, 20)}, events: true}, quiet, s(23)},
	"the same, and probes are ignored":          {world{lives: []life{serverStream(3, 13, 20)}, Config: Config{Probes: IgnoreProbes}}, quiet, s(23)},
	"calls each second on a kept connection":    {world{lives: []life{webSocket(20)}}, quiet, s(23)},
	"the same, left out as probes":              {world{lives: []life{webSocket(60)}, Config: Config{Probes: IgnoreProbes}}, quiet, s(3)},
	"requests of a loop in a shell":             {world{lives: everyProbe(1.012, 0, 20), events: true}, quiet, s(22.2)},
	"requests each half second":                 {world{lives: everyProbe(0.5, 0, 60), events: true}, quiet, never},
	"requests each 1.5 s":                       {world{lives: everyProbe(1.5, 0, 60), events: true}, quiet, never},
	"requests each 2.5 s":                       {world{lives: everyProbe(2.5, 0, 60), events: true}, quiet, never},
	"a peer that is away for a while":           {world{lives: []life{{open: s(-9), moves: answered(2).moves, vanished: s(2)}}, Config: Config{MaxSilence: s(9)}}, quiet, s(11)},
	"an upload that asked whether to send":      {world{lives: []life{{open: s(-3), moves: []move{{s(-3), 100}, {s(-2), 9000}, {s(12), -9}}}}}, quiet, s(15)},
	"an upload in small parts":                  {world{lives: []life{{open: s(-3), moves: append(oneWay(-3, 0.4, 1).moves, move{s(12), -9})}}}, quiet, s(15)},
	"TCP checks":                                {world{lives: every(s(1.7), s(-5), s(50), life{close: s(0.4)}), events: true}, drained, s(3)},
	"TCP checks, by events alone":               {world{lives: every(s(1.7), s(0.1), s(50), life{close: s(0.01)}), events: true}, settled, s(3)},
	"preconnected, then used":                   {world{lives: []life{{open: s(1), moves: answered(2.5).moves}}}, settled, s(5.5)},
	"preconnected, then used after long":        {world{lives: []life{{open: s(0.5), moves: answered(2.9).moves}}}, quiet, s(6)},
	"a remnant":                                 {world{lives: []life{{open: s(1), state: tcp.FinWait2, shown: shown{withoutInfo: true}}}}, drained, s(3)},
	"patiently, two periods of one page":        {world{lives: append(probing(2), everyProbe(3, 0.5, 60)...), events: true}, quiet, never},
	"a greeting":                                {world{lives: []life{{open: s(1.1), moves: []move{{s(1.1), -80}}}}}, quiet, s(3)},
	"a stream that needs no request":            {world{lives: []life{{open: s(-5), moves: []move{{s(-5), -80}, {s(1), -80}, {s(3), -80}, {s(5), -80}}}}}, quiet, s(8)},
	"a PING during a slow request":              {world{lives: []life{{open: s(-5), moves: []move{{s(-5), 100}, {s(-4.9), -50}, {s(-1), 200}, {s(2), 17}, {s(2.001), -17}, {s(12), -500}}}}}, quiet, s(15)},
	"a small response":                          {world{lives: []life{{open: s(-5), moves: []move{{s(-5), 100}, {s(-4.9), -50}, {s(-1), 20}, {s(2), -5}}}}}, quiet, s(5)},
	"patiently, probes every 1 s":               {world{lives: probing(1), events: true}, quiet, s(7)},
	"patiently, probes every 2 s":               {world{lives: probing(2), events: true}, quiet, s(8)},
	"patiently, probes every 3 s":               {world{lives: everyProbe(3, 0.5, 60), events: true}, quiet, s(9.75)},
	"patiently, probes without bytes seen":      {world{lives: probing(1)}, quiet, s(7)},
	"patiently, probes over TLS":                {world{lives: alternating(everyProbe(1, 0, 60)), events: true}, quiet, s(7)},
	"patiently, two probes alike":               {world{lives: append(probing(2), everyProbe(2, 0.7, 60)...), events: true}, quiet, s(8.25)},
	"patiently, probes and requests":            {world{lives: append(probing(1), every(s(0.3), 0, s(9), request)...), events: true}, quiet, s(11.75)},
	"patiently, probes of eight clients":        {world{lives: polling(8, 2, 60), events: true}, quiet, s(8.25)},
	"patiently, probes after many requests":     {world{lives: append(differing(3000, 1.5), everyProbe(2, 1.9, 60)...), events: true}, quiet, s(8)},
	"patiently, polls of twelve clients":        {world{lives: polling(12, 2, 15), events: true}, quiet, s(18)},
	"patiently, a poll that moves away":         {world{lives: polling(1, 1, 5), events: true}, quiet, s(7)},
	"probes every 1 s, not ignored":             {world{lives: probing(1), events: true, Config: Config{Probes: CountProbes}}, quiet, never},
	"probes and requests of one peer":           {world{lives: append(probing(1), every(s(0.3), 0, s(5), request)...), events: true, Config: Config{Probes: IgnoreProbes}}, quiet, s(8)},
	"requests that look like the probes":        {world{lives: append(probing(1), everyProbe(0.31, 0.13, 8)...), events: true, Config: Config{Probes: IgnoreProbes}}, quiet, s(11)},
}

// inParts returns a first request in parts a period apart, answered so long after the last.
func inParts(open float64, parts int, period, work float64) life {
	l := life{open: s(open)}
	for i := range parts {
		l.moves = append(l.moves, move{s(open + period*float64(i)), 20_000})
	}
	last := l.moves[parts-1].at
	l.moves = append(l.moves, move{last + s(work), -200})
	return l
}

// preconnected returns a connection whose first request has four segments.
func preconnected(open, request, answered float64) life {
	l := life{open: s(open)}
	for range 4 {
		l.moves = append(l.moves, move{s(request), 1448})
	}
	l.moves = append(l.moves, move{s(answered), -200})
	return l
}

// serverStream returns a call that the program answers with a message every period; the client
// replies to each with a WINDOW_UPDATE.
func serverStream(period float64, update int, until float64) life {
	l := life{open: s(-5), moves: []move{{s(-5), 300}}}
	for at := -4.0; at <= until; at += period {
		l.moves = append(l.moves, move{s(at), -500}, move{s(at) + s(0.002), update})
	}
	l.moves = append(l.moves, move{l.moves[len(l.moves)-1].at + s(0.001), -90})
	return l
}

// TestVerdicts: each condition is met in time, and not before.
func TestVerdicts(t *testing.T) {
	for name, c := range verdictCases {
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

// TestStuck: a program is stuck if connections wait, and for 10 s no connection is accepted
// and no byte moves.
func TestStuck(t *testing.T) {
	full := func(time.Duration) uint32 { return 5 }
	waiting := life{open: s(-3), accepted: -1, moves: []move{{s(-3), 100}}, unread: 100}
	for name, c := range map[string]struct {
		world
		want time.Duration
	}{
		"a hung program":                        {world{queue: full}, s(10)},
		"with a request until given up":         {world{queue: full, lives: []life{waiting}}, s(10)},
		"with a request given up before":        {world{queue: full, lives: []life{waiting}, Config: Config{MaxSilence: s(9.5)}}, s(10)},
		"no tcp_info, none accepted":            {world{queue: full, lives: []life{withoutInfo(waiting)}, Config: Config{MaxSilence: s(5)}}, s(10)},
		"no tcp_info, one accepted":             {world{queue: full, lives: []life{withoutInfo(waiting), withoutInfo(answered(-5))}, Config: Config{MaxSilence: s(5)}}, never},
		"short connections come and go unseen":  {world{queue: full, lives: every(s(1.1), 0, s(20), life{accepted: -1, close: s(0.4), unread: 9})}, s(30.5)},
		"a byte moves meanwhile":                {world{queue: full, lives: []life{waiting, {open: s(-3), moves: []move{{s(-3), 9}, {s(6), -9}}}}, Config: Config{MaxSilence: s(8)}}, s(16)},
		"beside an idle connection, in jiffies": {world{queue: full, lives: []life{{open: s(-9), moves: answered(-9).moves, shown: shown{blurred: true}}}}, s(10)},
		"still answers":                         {world{queue: full, lives: []life{webSocket(20)}}, s(30)},
		"a queue that is emptied":               {world{queue: func(now time.Duration) uint32 { return map[bool]uint32{now < s(8): 5}[true] }}, never},
		"still accepts":                         {world{queue: full, lives: every(s(5), 0, s(20), life{close: s(100)})}, s(25)},
		"short connections are served":          {world{queue: full, events: true, lives: everyProbe(1.1, 0, 20)}, s(30)},
		"nginx with stopped workers":            {world{queue: full, lives: every(s(0.1), 0, s(60), life{accepted: -1, close: s(30), moves: []move{{0, 100}}, unread: 100})}, s(10)},
		"a slow request before the others":      {world{queue: full, lives: []life{waiting, slowRequest}}, s(19)},
		"a port that nobody accepts from":       {world{queue: func(time.Duration) uint32 { return 1 }, lives: []life{{open: s(-9), accepted: -1}, {port: 81, close: s(0.05), moves: request.moves}}}, never},
		"requests that nobody reads":            {world{lives: []life{{open: s(-9), moves: []move{{s(-9), 9}}, unread: 9}}}, s(10)},
		"a body that is read late":              {world{lives: []life{{open: s(-2), moves: []move{{s(-2), 100_000}}, unread: 96_000}}}, s(30)},
		"the head of a request that is read":    {world{lives: []life{{open: s(-2), moves: []move{{s(-2), 100_000}}, unread: 96_000}}, queue: full}, s(30)},
		"a long wait for silence":               {world{queue: full, Config: Config{QuietFor: s(15)}}, s(15)},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := c.until(never, stuck); got < c.want || got > c.want+s(0.5) {
				t.Errorf("after %v, want %v", got, c.want)
			}
		})
	}
}

// TestSummary covers the figures for the report.
func TestSummary(t *testing.T) {
	w := world{events: true, Config: Config{Probes: CountProbes}, lives: append(everyProbe(1, 0.5, 10), answered(-3), answered(2.2),
		life{open: s(-9), moves: []move{{s(-9), 9}}})}
	_, tr := w.until(s(10), drained)
	r := tr.Summary()
	want := Pattern{Peer: netip.MustParseAddr("10.0.0.1"), Port: 80, Received: 77, Period: time.Second, Count: 10}
	if len(r.Patterns) != 1 || r.Patterns[0] != want {
		t.Errorf("patterns %v, want %v", r.Patterns, want)
	}
	if r.More {
		t.Error("More is true, though no connection was missed")
	}
	tr.Begin(start.Add(s(10)))
	tr.End(Rest{MissedAt: start})
	if !tr.Summary().More {
		t.Error("More is false, though connections were missed")
	}
	if r.Accepted != 11 || r.Open != 3 || r.InFlight != 1 || r.LeftOut.GivenUp != 0 {
		t.Errorf("%+v", r)
	}
	if last := r.LastNew.Sub(start); last < s(9.5) || last > s(9.51) {
		t.Errorf("LastNew is %v after the trigger", last)
	}
	if got := r.PerSecond; !slices.Equal(got, []int{1, 1, 2, 1, 1, 1, 1, 1, 1, 1}) {
		t.Errorf("PerSecond is %v", got)
	}
	w.Probes = IgnoreProbes
	_, tr = w.until(s(10), drained)
	if n := tr.Summary().LeftOut.Probes; r.LeftOut.Probes != 0 || n != 10 {
		t.Errorf("%d probes are left out if they count, and %d if they are ignored", r.LeftOut.Probes, n)
	}
}

// TestPatternsOrder: patterns of one period are in the order of peer, bytes and port.
func TestPatternsOrder(t *testing.T) {
	for range 10 {
		w := world{events: true}
		for port := range uint16(8) {
			for _, l := range everyProbe(1, 0.5, 5) {
				l.port = 80 + port
				w.lives = append(w.lives, l)
			}
		}
		_, tr := w.until(s(5), stuck)
		patterns := tr.Summary().Patterns
		if len(patterns) != 8 || !slices.IsSortedFunc(patterns, func(a, b Pattern) int { return cmp.Compare(a.Port, b.Port) }) {
			t.Fatalf("%v", patterns)
		}
	}
}

// TestMonotone: longer limits or incomplete samples never make a condition hold earlier.
func TestMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dice := func(n float64) time.Duration { return time.Duration(r.Float64()*n*100) * 10 * time.Millisecond }
	for range 2000 {
		base := world{lives: randomLives(r, dice), events: true, Config: Config{QuietFor: s(1) + dice(3), MaxSilence: s(5) + dice(5), Probes: ProbeRule(r.IntN(3))}}
		for _, cond := range []func(Verdict) bool{settled, quiet, drained} {
			first, _ := base.until(s(60), cond)
			patient, lasting := base, base
			failing := base
			patient.QuietFor += dice(2)
			lasting.MaxSilence += dice(5)
			failing.incomplete = func(now time.Duration) bool { return now > first-s(2) && now < first }
			for name, w := range map[string]*world{"quiet-for": &patient, "max-silence": &lasting, "incomplete": &failing} {
				if got, _ := w.until(s(60), cond); got < first {
					t.Fatalf("%s: %v instead of %v; %+v", name, got, first, base)
				}
			}
		}
		// each condition implies the weaker conditions
		_, tr := base.until(s(60), func(v Verdict) bool { return v.Drained && !v.Quiet || v.Quiet && !v.Settled })
		if v := tr.Verdict(); v.Drained && !v.Quiet || v.Quiet && !v.Settled {
			t.Fatalf("%+v; %+v", v, base)
		}
	}
}

// randomLives returns connections of all kinds: short and kept, half-closed, without a
// byte, one-way, with PINGs, with peers that vanish, and like clockwork.
func randomLives(r *rand.Rand, dice func(seconds float64) time.Duration) (lives []life) {
	sizes := []int{100, 17, 9}
	for range r.IntN(6) {
		l := life{open: dice(12) - s(6), port: 80}
		size := sizes[r.IntN(len(sizes))]
		for at := l.open; r.IntN(3) > 0; at += dice(3) + s(0.01) {
			l.moves = append(l.moves, move{at, size - 2*size*r.IntN(2)})
		}
		switch r.IntN(6) {
		case 0:
			l = oneWay(float64(-r.IntN(9)), 0.5+r.Float64()*2, 8)
		case 1:
			l.state = tcp.CloseWait
		case 2:
			l.vanished = dice(9) + s(0.01)
		case 3:
			l = webSocket(float64(r.IntN(20)))
		}
		if r.IntN(2) == 0 {
			l.close = max(l.open, 0) + s(0.01) + dice(8)
		}
		lives = append(lives, l)
	}
	if r.IntN(3) == 0 {
		lives = append(lives, everyProbe(0.5+dice(3).Seconds(), dice(1).Seconds(), 5+dice(30).Seconds())...)
	}
	return lives
}

// TestNothingAllocated: a sample allocates no memory for known connections.
func TestNothingAllocated(t *testing.T) {
	w := world{}
	for i := range 1000 {
		l := answered(-5)
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
