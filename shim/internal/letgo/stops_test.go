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
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

var stops = flag.Int("stops", 60, "the number of stops of TestStops")

// TestStops simulates stops of a server that dies of its signal, with clients that keep pools of
// connections. A hold until quiet with --close-idle loses no more requests than one without, and
// is shorter. -v prints the figures without it and with it.
func TestStops(t *testing.T) {
	n := *stops
	for _, cells := range kinds {
		var lost, losing, inHold [2]int
		var held [2]time.Duration
		for seed := range uint64(n) {
			for i := range lost {
				p := newPlay(seed, cells[1])
				p.hold(i == 1)
				lost[i] += p.lost
				losing[i] += min(p.lost, 1)
				inHold[i] += p.lostInHold
				held[i] += p.ended
			}
		}
		found := fmt.Sprintf("%s: %d stops, of which %d lost %d requests, %d in holds of %v",
			cells[0], n, losing, lost, inHold, held)
		t.Log(found)
		var mayLose, mayBeLosing int
		_, _ = fmt.Sscan(cells[2], &mayLose, &mayBeLosing)
		tooMany := 100*(lost[1]-lost[0]) > n*(mayLose+1) || 100*(losing[1]-losing[0]) > n*(mayBeLosing+1) || held[1] > held[0]
		if cells[2] == "unlike" {
			tooMany = 2*inHold[1] > n
		}
		if tooMany {
			t.Error(found)
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
	resets uint64        // by the server's kernel

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
	Paused    float64       // the share of answers that come in two parts
	Pause     time.Duration // between these

	addr   netip.Addr
	reacts time.Duration // after this it notices the end of an idle connection; negative: when it takes one
	lag    time.Duration // new connections go to another server from then on
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
	if c.Late > 0 && p.now >= c.lag+c.Late {
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
	p.at(c.RTT/2, func() { p.arrive(l, took) })
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

// arrive is a request's arrival at the server. If that takes none, its kernel resets the connection.
func (p *play) arrive(l *line, took time.Duration) {
	if l.State != tcp.Established || p.ended > 0 {
		p.lose()
		p.resets++
		l.gone = true
		l.open--
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
	w := &world.World{Config: traffic.Config{QuietFor: s(4), MaxSilence: s(30), Poll: s(4) / 12}}
	asker := New(Config{QuietFor: w.QuietFor, CloseIdle: true})
	w.Sockets = func(now time.Duration) (list []tcp.Socket) {
		p.run(now)
		w.Resets = p.resets
		for _, l := range p.conns {
			if !l.gone && (l.State != tcp.TimeWait || asker.AwaitsClients()) {
				list = append(list, l.Show(now))
			}
		}
		return list
	}
	var hold *world.Hold
	var at, searching time.Duration
	w.Then = func(h *world.Hold, now time.Duration) {
		hold, at = h, now
		if closeIdle {
			asker.updateAndAnswer(h.Latest, h.NoneNewFor, Answer{})
		}
		h.ShutSilence = asker.Silence()
		if h.Kept && searching == 0 {
			searching = at
		}
	}
	w.Pause = func() time.Duration {
		pause := w.Poll
		if asker.Watching() {
			p.ask(asker)
			pause = 25 * time.Millisecond
		}
		if searching > 0 {
			return time.Millisecond
		}
		for _, last := range []time.Time{hold.LastNew, hold.LastByte, world.Start} {
			if due := last.Add(w.QuietFor).Sub(world.Start); due > p.now {
				pause = min(pause, due-at)
			}
		}
		return pause
	}
	p.ended, _ = w.Until(world.Never, func(v traffic.Verdict) bool {
		return v.Quiet || searching > 0 && (v.AtRisk == 0 || at > searching+searches) || at > ceiling
	})
	for _, l := range p.conns {
		for ; l.working > 0; l.working-- {
			p.lost++
		}
		p.end(l)
	}
	p.run(p.ended + s(14)) // longer than any lag
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
