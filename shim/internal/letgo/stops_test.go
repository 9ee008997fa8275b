package letgo

import (
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
		holds                      []time.Duration
	}
	for _, kind := range kinds {
		var sums [2]sum
		for seed := range uint64(*stops) {
			for i, closeIdle := range []bool{false, true} {
				p := newPlay(seed, kind)
				p.hold(closeIdle)
				y := &sums[i]
				y.losing += min(p.lost, 1)
				y.lost += p.lost
				y.inHold += p.lostInHold
				y.holds = append(y.holds, p.ended)
				if p.kept {
					y.kept++
				}
			}
		}
		for i, y := range sums {
			slices.Sort(y.holds)
			name := []string{"quiet", "with --close-idle"}[i]
			n := len(y.holds)
			t.Logf("%-12s %-17s | %4d of 1000 stops lose | %6.2f lost a stop, %5.2f in the hold | kept %4d of 1000 | hold %4.1f s, 95 %% %4.1f s",
				kind, name, 1000*y.losing/n, float64(y.lost)/float64(n), float64(y.inHold)/float64(n), 1000*y.kept/n,
				y.holds[n/2].Seconds(), y.holds[n*95/100].Seconds())
		}
		without, with := sums[0], sums[1]
		if slices.Contains(unlike, kind) {
			if 2*with.inHold > *stops {
				t.Errorf("%s: %d requests were cut in %d holds", kind, with.inHold, *stops)
			}
			continue
		}
		n := float64(*stops) / 100
		if may := more[kind]; float64(with.lost-without.lost) > n*(may.requests+1) || float64(with.losing-without.losing) > n*(may.stops+1) {
			t.Errorf("%s: %d requests lost in %d stops, and %d in %d without --close-idle",
				kind, with.lost, with.losing, without.lost, without.losing)
		}
		if mean(with.holds) > mean(without.holds) {
			t.Errorf("%s: the mean hold is %v, and %v without --close-idle", kind, mean(with.holds), mean(without.holds))
		}
	}
}

func mean(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}

// kinds are what a pool does. In each, all else is drawn: the rate, the size of the pool, the
// distance, the time of a request, the lag of the balancer, and when clients look at connections.
var kinds = []string{
	"fifo", "lifo", // the connection of a request is that used the longest time ago, or the shortest
	"thin",      // few requests
	"old 120",   // the same, on connections that are 2 min old
	"tails 120", // and the end of each answer comes 200 ms late
	"slow 120",  // and one request of twenty asks for a second answer, which takes 2 s
	"shrinking", // a burst before TERM has made the pool larger than needed
	"late",      // a balancer that lets go of the pool later than of new connections
	"far",       // clients more than 1 ms away
	"blind",     // clients that do not look whether a connection has been closed
	"shared 1",  // many at a time on each connection, one of twenty 5 s long, of clients that are 1 s old
	"shared 2.5",
	"shared 8",
	"beside", // one request of twenty asks for a second answer, which takes 2 s
	"parts",  // uploads of ten parts, each of which is answered
	"tail",   // the end of each answer comes 200 ms late
	"pauses", // answers, or some of them, come in two parts, with up to 40 ms between
}

// unlike are the kinds in which what looks like requests one at a time is something else: in the
// hold no more than half a request is cut a stop.
var unlike = []string{"shared 1", "shared 2.5", "shared 8", "beside", "slow 120", "parts", "tail", "tails 120", "pauses"}

// more is how many requests and stops of 100, and one as noise, may be lost more with --close-idle,
// where it should not be used: a balancer lets go by itself, or clients lose a request with every
// connection that is closed, of which some connect to the server once more.
var more = map[string]struct{ requests, stops float64 }{"late": {10, 10}, "blind": {50, 0}}

// play is a simulated stop. Times are relative to TERM.
type play struct {
	*rand.Rand
	kind   string
	begins time.Duration // of the clients
	now    time.Duration
	events []event // by time
	peers  []*peer
	conns  []*line
	ended  time.Duration // the hold; 0: not yet
	kept   bool
	resets uint64 // by the server's kernel

	lost, lostInHold int
}

// peer is a client with a pool.
type peer struct {
	addr   netip.Addr
	rtt    time.Duration
	reacts time.Duration // after this it notices the end of an idle connection; negative: when it takes one
	blind  bool          // never
	lag    time.Duration // new connections go to another server from then on
	letsGo time.Duration // all requests do; 0: never
	size   int
	open   int
	idle   []*line // the last was used last
	rate   float64
	steady bool
	heavy  bool
	took   time.Duration // by a request
	newest bool          // used first
	paused float64       // the share of answers that come in two parts
	pause  time.Duration
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

// warmUp is how long clients have made requests before TERM.
const warmUp = 12 * time.Second

func newPlay(seed uint64, kind string) *play {
	p := &play{Rand: rand.New(rand.NewPCG(7, seed)), kind: kind, begins: -warmUp}
	if shared, since, _ := strings.Cut(kind, " "); since != "" {
		seconds, _ := strconv.ParseFloat(since, 64)
		p.kind, p.begins = shared, -s(seconds)
	}
	lag := p.draw(0.1, 12)
	for i := range 1 + p.IntN(3) {
		c := &peer{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), rtt: p.draw(0.00005, 0.001), lag: lag,
			reacts: p.draw(0.00005, 0.005), size: 1 + p.IntN(24), rate: p.draw(1, 150).Seconds(),
			steady: p.IntN(4) == 0, heavy: p.IntN(4) == 0, took: p.draw(0.001, 0.2), newest: kind != "fifo"}
		if p.IntN(3) == 0 {
			c.reacts = -1
		}
		switch p.kind {
		case "parts":
			c.took = parts * partPause
		case "tail", "tails":
			c.took += tailPause
			c.paused, c.pause = 1, tailPause
		case "pauses":
			c.paused, c.pause = p.draw(0.03, 1).Seconds(), p.draw(0.001, 0.04)
		}
		if p.kind == "shared" {
			c.size, c.took = 1+p.IntN(6), p.draw(0.005, 0.05)
			c.rate = p.draw(5, 40).Seconds() * float64(c.size)
			c.heavy = false
		}
		c.rate = min(c.rate, float64(c.size)/2/c.took.Seconds()) // so half of the pool is busy at most
		switch p.kind {
		case "thin", "old", "tails", "slow":
			c.rate = p.draw(0.05, 3).Seconds()
		case "late":
			c.letsGo = lag + p.draw(0.1, 20)
		case "far":
			c.rtt = p.draw(0.0011, 0.1)
		case "blind":
			c.blind = true
		}
		p.peers = append(p.peers, c)
		p.now = p.begins
		begin := 1 + p.IntN(c.size)
		if kind == "shrinking" {
			begin = c.size
		}
		for range begin {
			c.open++
			p.request(c)
		}
		c.open = begin
		p.next(c)
	}
	return p
}

// draw draws a time in seconds, log-uniform.
func (p *play) draw(from, to float64) time.Duration {
	return world.Seconds(from * math.Pow(to/from, p.Float64()))
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
	gap := 1 / c.rate
	if !c.steady {
		gap *= p.ExpFloat64()
	}
	p.at(world.Seconds(gap), func() {
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
		if c.newest {
			i = len(c.idle) - 1
		}
		if p.kind == "shared" {
			i = p.IntN(len(c.idle))
		}
		l := c.idle[i]
		isOpen := l.told == 0 || l.told > p.now || c.blind
		if isOpen && p.kind == "shared" {
			return l
		}
		c.idle = slices.Delete(c.idle, i, i+1)
		if isOpen {
			return l
		}
		p.leave(l)
	}
	if c.open >= c.size && p.now > p.begins {
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
			Info: tcp.Info{RTT: c.rtt}}, p.now)
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
	took := c.took
	if c.heavy {
		took = min(time.Duration(float64(took)*math.Pow(1-p.Float64(), -1/1.5)/3), 10*time.Second)
	}
	if l.elsewhere {
		p.at(took, func() { c.idle = append(c.idle, l) })
		return
	}
	switch p.kind {
	case "parts":
		p.at(c.rtt/2, func() { p.upload(l, 0) })
	case "tail", "tails":
		took -= tailPause
		fallthrough
	default:
		p.at(c.rtt/2, func() { p.arrive(l, took) })
	}
}

const (
	parts     = 10
	partPause = 500 * time.Millisecond
	tailPause = 200 * time.Millisecond
)

// upload is the arrival of a part, which is answered at once, as is the end after the last.
func (p *play) upload(l *line, part int) {
	if part == 0 && (l.State != tcp.Established || p.ended > 0) {
		p.lose()
		p.resets++
		l.gone = true
		l.open--
		return
	}
	bytes := 800
	switch part {
	case 0:
		l.pending = 1
	case parts:
		bytes = 5
	}
	if l.pending == 0 { // cut
		return
	}
	l.Receive(p.now, bytes)
	l.Send(p.now+time.Millisecond, bytes)
	if part < parts {
		p.at(partPause, func() { p.upload(l, part+1) })
		return
	}
	l.pending = 0
	p.at(l.rtt/2, func() { p.release(l) })
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
	if l.State != tcp.Established || p.ended > 0 {
		p.lose()
		p.resets++
		l.gone = true
		l.open--
		return
	}
	l.Receive(p.now, 300)
	l.working++
	if p.kind == "shared" && p.IntN(20) == 0 {
		took = s(5)
	}
	if (p.kind == "beside" || p.kind == "slow") && p.IntN(20) == 0 {
		p.later(l, 2*time.Second, 700, func() {})
	}
	p.at(took, func() {
		if p.ended > 0 || l.working == 0 {
			return // was counted
		}
		l.Send(p.now, 700)
		l.working--
		if l.paused > 0 && p.Float64() < l.paused {
			p.later(l, l.pause, 5, func() { p.at(l.rtt/2, func() { p.release(l) }) })
		} else {
			p.at(l.rtt/2, func() { p.release(l) })
		}
		if l.shut {
			p.end(l)
		}
	})
}

// end is the server's end of a connection.
func (p *play) end(l *line) {
	if p.kind == "shared" { // the server cancels what is under way
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
	l.told = p.now + l.rtt/2
	if isIdle := slices.Contains(l.idle, l); l.pending > 0 && !isIdle {
		p.at(l.rtt/2, func() { p.leave(l) })
	}
	for ; l.pending > 0; l.pending-- {
		p.lose()
	}
	p.notice(l)
}

// notice lets a client that looks all the time notice the end of a connection.
func (p *play) notice(l *line) {
	if l.told == 0 || l.reacts < 0 || l.blind {
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
	p.at(l.rtt/2, func() { l.State = tcp.TimeWait })
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
