package letgo

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

var stops = flag.Int("stops", 60, "the number of stops of TestStops")

// TestStops simulates stops of a server that dies of its signal, with clients that keep pools of
// connections. A hold until quiet with --close-idle loses no more requests than one without, and
// is shorter. With -v the test prints a table.
func TestStops(t *testing.T) {
	type sum struct {
		losing, lost, inHold, kept int
		held                       time.Duration
	}
	for _, cells := range kinds {
		var sums [2]sum
		for seed := range uint64(*stops) {
			for i := range sums {
				p := newPlay(seed, cells[1])
				p.hold(i == 1)
				y := &sums[i]
				y.losing += min(p.lost, 1)
				y.lost += p.lost
				y.inHold += p.lostInHold
				y.held += p.ended
				if p.kept {
					y.kept++
				}
			}
		}
		n := *stops
		for i, y := range sums {
			each := func(sum int) float64 { return float64(sum) / float64(n) }
			t.Logf("%-10s %s | %.2f of stops lose | %5.2f lost a stop, %5.2f in the hold | kept %.2f | hold %4.1f s",
				cells[0], []string{"quiet       ", "--close-idle"}[i], each(y.losing), each(y.lost), each(y.inHold), each(y.kept),
				y.held.Seconds()/float64(n))
		}
		var may sum
		_, _ = fmt.Sscan(cells[2], &may.lost, &may.losing)
		without, with := &sums[0], &sums[1]
		switch {
		case cells[2] == "unlike":
			if 2*with.inHold > n {
				t.Errorf("%s: %d requests were cut in %d holds", cells[0], with.inHold, n)
			}
		case 100*(with.lost-without.lost) > n*(may.lost+1), 100*(with.losing-without.losing) > n*(may.losing+1):
			t.Errorf("%s: %d requests lost in %d stops, and %d in %d without --close-idle",
				cells[0], with.lost, with.losing, without.lost, without.losing)
		case with.held > without.held:
			t.Errorf("%s: the hold is longer than without --close-idle", cells[0])
		}
	}
}

// kinds are what the clients of a pool do, beside what is drawn of all. Where they are unlike requests one
// at a time, no more than half a request is cut a stop in the hold. Of 100 stops so many more may be
// lost with --close-idle, and one as noise, where it should not be used: a balancer lets go by itself, or clients
// lose a request with every connection that is closed, of which some connect to the server once more.
var kinds = tables.Rows(`
	# kind | the fields of peer | of 100 stops, so many requests and stops may be lost more
	fifo       | oldest                                                     |
	lifo       |                                                            |
	thin       | rate=0.05..3                                               |
	old        | rate=0.05..3 since=120                                     |
	old tails  | rate=0.05..3 since=120 paused=1 pause=0.2                  | unlike
	old slow   | rate=0.05..3 since=120 beside                              | unlike
	shrinking  | shrinking                                                  |
	late       | late=0.1..20                                               | 10 10
	far        | rtt=0.0011..0.1                                            |
	blind      | blind                                                      | 50 0
	shared 1   | shared size=1..6 took=0.005..0.05 rate=20..200 since=1     | unlike
	shared 2.5 | shared size=1..6 took=0.005..0.05 rate=20..200 since=2.5   | unlike
	shared 8   | shared size=1..6 took=0.005..0.05 rate=20..200 since=8     | unlike
	beside     | beside                                                     | unlike
	parts      | parts=10 took=5                                            | unlike
	tail       | paused=1 pause=0.2                                         | unlike
	pauses     | paused=0.03..1 pause=0.001..0.04                           | unlike
`)

// play is a simulated stop. Times are relative to TERM.
type play struct {
	*rand.Rand
	begins time.Duration // of the clients
	now    time.Duration
	events []event // by time
	conns  []*line
	ended  time.Duration // the hold; 0: not yet
	kept   bool
	resets uint64 // by the server's kernel

	lost, lostInHold int
}

// peer is a client with a pool.
type peer struct {
	Since     time.Duration // before TERM
	RTT       time.Duration
	Size      int
	Rate      float64
	Took      time.Duration // by a request
	Oldest    bool          // the connection of a request is that used the longest time ago, else the shortest
	Shrinking bool          // a burst before TERM has made the pool larger than needed
	Late      time.Duration // the balancer lets go of the pool so much later than of new connections; 0: never
	Blind     bool          // does not look whether a connection has been closed
	Shared    bool          // many requests at a time on each connection, one of twenty 5 s long
	Beside    bool          // one request of twenty asks for a second answer, which takes 2 s
	Parts     int           // of an upload, each of which is answered
	Paused    float64       // the share of answers that come in two parts
	Pause     time.Duration // between these

	addr   netip.Addr
	reacts time.Duration // after this it notices the end of an idle connection; negative: when it takes one
	lag    time.Duration // new connections go to another server from then on
	letsGo time.Duration // all requests do; 0: never
	open   int
	idle   []*line // the last was used last
	steady bool
	heavy  bool
}

// line is a connection of a pool.
type line struct {
	*peer
	world.Kernel
	elsewhere bool          // to another server
	working   int           // requests of which the server is working on
	pending   int           // answers that go on, or come beside others
	shut      bool          // for reading
	gone      bool          // is not shown
	told      time.Duration // when the client's kernel learns of the end; 0: never
}

func newPlay(seed uint64, kind string) *play {
	p := &play{Rand: rand.New(rand.NewPCG(7, seed))}
	lag := s(p.draw("0.1..12"))
	for i := range 1 + p.IntN(3) {
		c := &peer{
			addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), lag: lag, reacts: s(p.draw("0.00005..0.005")),
			steady: p.IntN(4) == 0, heavy: p.IntN(4) == 0,
		}
		for word := range strings.FieldsSeq("since=12 rtt=0.00005..0.001 size=2..32 rate=1..150 took=0.001..0.2 " + kind) {
			name, value, _ := strings.Cut(word, "=")
			if !tables.Set(c, name, value, p.draw, func(text string) time.Duration { return s(p.draw(text)) },
				func(text string) int { return int(p.draw(text)) }) {
				panic(word)
			}
		}
		if p.IntN(3) == 0 {
			c.reacts = -1
		}
		if c.Late > 0 {
			c.letsGo = lag + c.Late
		}
		c.heavy = c.heavy && !c.Shared
		c.Rate = min(c.Rate, float64(c.Size)/2/(c.Took+c.Pause).Seconds()) // so half of the pool is busy at most
		p.begins = -c.Since
		p.now = p.begins
		begin := 1 + p.IntN(c.Size)
		if c.Shrinking {
			begin = c.Size
		}
		for range begin {
			p.request(c)
		}
		c.open = begin
		p.next(c)
	}
	return p
}

// draw draws a number from a range, log-uniform, or returns the only number.
func (p *play) draw(text string) float64 {
	low, high, isRange := strings.Cut(text, "..")
	from, _ := strconv.ParseFloat(low, 64)
	if !isRange {
		return from
	}
	to, _ := strconv.ParseFloat(high, 64)
	return from * math.Pow(to/from, p.Float64())
}

// event is a step to come.
type event struct {
	at time.Duration
	do func()
}

func (p *play) at(d time.Duration, do func()) {
	e := event{p.now + d, do}
	i, _ := slices.BinarySearchFunc(p.events, e.at+1, func(e event, at time.Duration) int { return cmp.Compare(e.at, at) })
	p.events = slices.Insert(p.events, i, e)
}

// run plays up to a time.
func (p *play) run(to time.Duration) {
	for len(p.events) > 0 && p.events[0].at <= to {
		e := p.events[0]
		p.events = p.events[1:]
		p.now = e.at
		e.do()
	}
	p.now = to
}

// next plans the requests of a client.
func (p *play) next(c *peer) {
	gap := 1 / c.Rate
	if !c.steady {
		gap *= p.ExpFloat64()
	}
	p.at(s(gap), func() {
		p.request(c)
		p.next(c)
	})
}

func (p *play) lose() {
	p.lost++
	if p.ended == 0 {
		p.lostInHold++
	}
}

// take returns a kept connection, a new one, or nil if all are busy, or the new one was refused.
func (p *play) take(c *peer) *line {
	for len(c.idle) > 0 {
		i := 0
		if !c.Oldest {
			i = len(c.idle) - 1
		}
		if c.Shared {
			i = p.IntN(len(c.idle))
		}
		l := c.idle[i]
		isOpen := l.told == 0 || l.told > p.now || c.Blind
		if isOpen && c.Shared {
			return l
		}
		c.idle = slices.Delete(c.idle, i, i+1)
		if isOpen {
			return l
		}
		p.leave(l)
	}
	if c.open >= c.Size && p.now > p.begins {
		return nil
	}
	if p.ended > 0 && p.now < c.lag {
		p.lose()
		return nil
	}
	l := &line{peer: c, elsewhere: p.now >= c.lag}
	if p.now > p.begins {
		c.open++
	}
	if !l.elsewhere {
		id := len(p.conns) + 1
		l.Kernel = world.NewKernel(tcp.Socket{State: tcp.Established, Cookie: uint64(id), Inode: uint32(id), HasInfo: true,
			Local: netip.MustParseAddrPort("10.0.0.99:80"), Remote: netip.AddrPortFrom(c.addr, uint16(id)),
			Info: tcp.Info{RTT: c.RTT}}, p.now)
		p.conns = append(p.conns, l)
	}
	return l
}

// request makes a request.
func (p *play) request(c *peer) {
	if c.letsGo > 0 && p.now >= c.letsGo {
		return
	}
	l := p.take(c)
	if l == nil {
		return
	}
	took := c.Took
	if c.heavy {
		took = min(time.Duration(float64(took)*math.Pow(1-p.Float64(), -1/1.5)/3), 10*time.Second)
	}
	if l.elsewhere {
		p.at(took, func() { c.idle = append(c.idle, l) })
		return
	}
	p.at(c.RTT/2, func() {
		if c.Parts > 0 {
			p.upload(l, 0)
		} else {
			p.arrive(l, took)
		}
	})
}

// refuses reports whether the server takes no request on a connection, which its kernel resets.
func (p *play) refuses(l *line) bool {
	if l.State == tcp.Established && p.ended == 0 {
		return false
	}
	p.lose()
	p.resets++
	l.gone = true
	l.open--
	return true
}

// upload is the arrival of a part, which is answered at once, as is the end after the last.
func (p *play) upload(l *line, part int) {
	if part == 0 && p.refuses(l) {
		return
	}
	bytes := 800
	switch part {
	case 0:
		l.pending = 1
	case l.Parts:
		bytes = 5
	}
	if l.pending == 0 { // cut
		return
	}
	l.Receive(p.now, bytes)
	l.Send(p.now+time.Millisecond, bytes)
	if part < l.Parts {
		p.at(s(0.5), func() { p.upload(l, part+1) })
		return
	}
	l.pending = 0
	p.at(l.peer.RTT/2, func() { p.release(l) })
}

// later sends more of an answer, or another answer, unless the connection is cut before.
func (p *play) later(l *line, after time.Duration, bytes int, then func()) {
	l.pending++
	p.at(after, func() {
		if l.pending > 0 {
			l.pending--
			l.Send(p.now, bytes)
			then()
		}
	})
}

// release is the client's end of a request.
func (p *play) release(l *line) {
	if !slices.Contains(l.idle, l) {
		l.idle = append(l.idle, l)
	}
	p.notice(l)
}

// arrive is a request's arrival at the server.
func (p *play) arrive(l *line, took time.Duration) {
	if p.refuses(l) {
		return
	}
	l.Receive(p.now, 300)
	l.working++
	if l.Shared && p.IntN(20) == 0 {
		took = s(5)
	}
	if l.Beside && p.IntN(20) == 0 {
		p.later(l, 2*time.Second, 700, func() {})
	}
	p.at(took, func() {
		if p.ended > 0 || l.working == 0 {
			return // was counted
		}
		l.Send(p.now, 700)
		l.working--
		if l.Paused > 0 && p.Float64() < l.Paused {
			p.later(l, l.Pause, 5, func() { p.at(l.peer.RTT/2, func() { p.release(l) }) })
		} else {
			p.at(l.peer.RTT/2, func() { p.release(l) })
		}
		if l.shut {
			p.end(l)
		}
	})
}

// end is the server's end of a connection.
func (p *play) end(l *line) {
	if l.Shared { // the server cancels what is under way
		for ; l.working > 0; l.working-- {
			p.lose()
		}
	}
	if l.working > 0 || l.told > 0 {
		return
	}
	if l.State == tcp.Established {
		l.State, l.HasInfo, l.Inode = tcp.FinWait2, false, 0
	}
	l.told = p.now + l.peer.RTT/2
	if isIdle := slices.Contains(l.idle, l); l.pending > 0 && !isIdle {
		p.at(l.peer.RTT/2, func() { p.leave(l) })
	}
	for ; l.pending > 0; l.pending-- {
		p.lose()
	}
	p.notice(l)
}

// notice lets a client that looks all the time notice the end of a connection.
func (p *play) notice(l *line) {
	if l.told == 0 || l.reacts < 0 || l.Blind {
		return
	}
	p.at(max(l.told-p.now, 0)+l.reacts, func() {
		if i := slices.Index(l.idle, l); i >= 0 {
			l.idle = slices.Delete(l.idle, i, i+1)
			p.leave(l)
		}
	})
}

// leave is a client's end of a connection that the server has closed.
func (p *play) leave(l *line) {
	l.open--
	p.at(l.peer.RTT/2, func() { l.State = tcp.TimeWait })
}

// hold plays the hold and what follows.
func (p *play) hold(closeIdle bool) {
	const ceiling, searches = 49 * time.Second, time.Second
	cfg := traffic.Config{QuietFor: s(4), MaxSilence: s(30), Poll: s(4) / 12}
	h, asker := world.NewHold(cfg), New(Config{QuietFor: cfg.QuietFor, CloseIdle: true})
	var searching time.Duration
	for at := time.Duration(0); ; {
		p.run(at)
		p.sample(h, asker.AwaitsClients())
		sample := &h.Sample
		if closeIdle {
			asker.updateAndAnswer(h.Latest, sample.NoneNewFor, Answer{})
		}
		h.ShutSilence = asker.Silence()
		if sample.Kept && searching == 0 {
			searching = at
		}
		p.kept = searching > 0
		if sample.Quiet || p.kept && (sample.AtRisk == 0 || at > searching+searches) || at > ceiling {
			break
		}
		isWatching := asker.Watching()
		if isWatching {
			p.ask(asker)
		}
		switch {
		case p.kept:
			at += time.Millisecond
			continue
		case isWatching:
			at += 25 * time.Millisecond
		default:
			at += cfg.Poll
		}
		for _, last := range []time.Time{sample.LastNew, sample.LastByte, world.Start} {
			if due := last.Add(cfg.QuietFor).Sub(world.Start); due > p.now {
				at = min(at, due)
			}
		}
	}
	p.ended = p.now
	for _, l := range p.conns {
		for ; l.working > 0; l.working-- {
			p.lost++
		}
		p.end(l)
	}
	p.run(p.ended + s(14)) // longer than any lag
}

func (p *play) sample(h *world.Hold, showTimeWait bool) {
	h.Ledger.Begin(world.Start.Add(p.now))
	h.Ledger.Observe(&tcp.Socket{State: tcp.Listen, Local: netip.MustParseAddrPort("0.0.0.0:80")}, ledger.Clients)
	for _, l := range p.conns {
		if !l.gone && (l.State != tcp.TimeWait || showTimeWait) {
			socket := l.Show(p.now)
			h.Ledger.Observe(&socket, ledger.Clients)
		}
	}
	h.End(ledger.Rest{Resets: p.resets})
}

// ask closes connections, as the sampler does.
func (p *play) ask(asker *Asker) {
	for _, k := range asker.ToAsk() {
		l := p.conns[k.Cookie-1]
		socket := l.Show(p.now)
		if !asker.MayAsk(k, &socket) {
			continue
		}
		asker.NoteAsked(k, &socket)
		l.shut = true
		p.at(100*time.Microsecond, func() { p.end(l) }) // the server's time to read the end
		p.run(p.now + 200*time.Microsecond)
	}
}
