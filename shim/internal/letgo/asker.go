package letgo

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Figures are for the report.
type Figures struct {
	Closed   int // kept connections that were closed while idle
	Notified int // connections on which GOAWAY was sent
	CameBack int // of their peers, how many have connected since
}

// Asker follows the connections that clients keep, from sample to sample.
type Asker struct {
	cfg        Config
	now        ledger.Moment
	noneNewFor time.Duration // in the latest sample; zero in an incomplete one
	usual      ledger.Usual  // in the latest sample
	resets     [2]uint64     // ledger.Rest.Resets of the latest two complete samples: an event is a sample late

	kept    []*Kept
	clients map[netip.Addr]*client
	ports   map[uint16]*port

	http2       []*HTTP2
	spoken      map[uint16]*spoken // by port
	wantedSince ledger.Moment      // GOAWAY may be sent, and was not; 0: on no connection

	asked struct {
		requests int           // on closed connections
		lastAt   ledger.Moment // the last of them
	}
	figures Figures
}

// Config is which connections an Asker follows.
type Config struct {
	QuietFor  time.Duration // how long silence must last
	CloseIdle bool          // kept connections are closed while they are idle
	Goaway    []uint16      // the ports on which GOAWAY is sent instead
}

// New returns an Asker.
func New(cfg Config) *Asker {
	return &Asker{
		cfg: cfg, clients: map[netip.Addr]*client{}, ports: map[uint16]*port{}, spoken: map[uint16]*spoken{},
	}
}

// Figures returns the figures up to the latest sample.
func (a *Asker) Figures() Figures { return a.figures }

// Update tells the Asker about a sample, and for how long nothing new had come.
func (a *Asker) Update(sample *ledger.Sample, noneNewFor time.Duration) {
	a.now = sample.Now
	a.usual = sample.Usual
	for i := range sample.Others {
		if o := &sample.Others[i]; o.Of != nil {
			noteEnd(o.Of, o.State)
		}
	}
	for _, c := range sample.Conns {
		switch {
		case c.Side != ledger.Clients || c.Fate != ledger.Shown && c.Fate != ledger.Closed:
			continue
		case c.First && c.New:
			a.noteNew(c.Remote.Addr())
		}
		switch {
		case slices.Contains(a.cfg.Goaway, c.Local.Port()):
			a.followHTTP2(c)
		case a.cfg.CloseIdle:
			a.follow(c)
		}
	}
	a.noneNewFor = 0
	if sample.Incomplete {
		return
	}
	a.noneNewFor = noneNewFor
	a.endHTTP2()
	isReset := sample.Uncounted != nil || sample.Resets != a.resets[0]
	a.resets = [2]uint64{a.resets[1], sample.Resets}
	a.kept = slices.DeleteFunc(a.kept, func(k *Kept) bool {
		isMissing := k.Listed != a.now || k.Memo != any(k)
		if isMissing {
			k.noteMissing(isReset)
			k.Memo = nil
		}
		return isMissing
	})
}

// noteEnd notes in which state a sample has shown a connection, or what the kernel keeps of it.
func noteEnd(c *ledger.Conn, state tcp.State) {
	if k, isKept := c.Memo.(*Kept); isKept {
		k.Conn = c
		k.noteEnd(state)
	}
}

// count returns how many kept connections are such.
func (a *Asker) count(is func(*Kept) bool) (n int) {
	for _, k := range a.kept {
		if is(k) {
			n++
		}
	}
	return n
}

// inUseLately reports whether bytes moved lately, and since the trigger, on an open connection.
func (a *Asker) inUseLately(k *Kept) bool {
	moved := k.Moved
	return ledger.IsOpen(&k.Socket) && moved > ledger.Trigger && a.now-moved < a.cfg.QuietFor
}

// noteNew notes a new connection.
func (a *Asker) noteNew(peer netip.Addr) {
	if p := a.clients[peer]; p != nil && p.away > 0 {
		p.noteBack()
		a.figures.CameBack++
	}
}

// follow notes what has happened on a connection. One without a cookie, or that no sample has
// shown open, is not followed.
func (a *Asker) follow(c *ledger.Conn) {
	noteEnd(c, c.State)
	k, isKept := c.Memo.(*Kept)
	switch isOpen := ledger.IsOpen(&c.Socket); {
	case !isKept && isOpen && c.Cookie != 0:
		k = &Kept{Conn: c, request: requestOf(c), since: a.now, cycle: unequal}
		c.Memo = k
		a.kept = append(a.kept, k)
		a.portOf(k)
	case isKept && isOpen:
		before := k.requests
		shown, idle := k.update(a.now)
		a.portOf(k).note(a.now, shown, idle)
		if k.client != nil {
			a.addRequests(k.requests - before)
		}
	}
}

// addRequests counts requests on closed connections.
func (a *Asker) addRequests(n int) {
	if n > 0 {
		a.asked.requests += n
		a.asked.lastAt = a.now
	}
}

func (a *Asker) portOf(k *Kept) *port {
	number := k.Local.Port()
	p := a.ports[number]
	if p == nil {
		p = newPort()
		a.ports[number] = p
	}
	return p
}

// clientAt returns the client at an address.
func (a *Asker) clientAt(peer netip.Addr) *client {
	if a.clients[peer] == nil {
		a.clients[peer] = &client{}
	}
	return a.clients[peer]
}

func (a *Asker) clientOf(k *Kept) *client { return a.clientAt(k.Remote.Addr()) }

// watchFor is how long before the first question connections are watched: in dense traffic that
// is time for the cycles that a port has to show.
const watchFor = time.Second

// maySoonClose reports whether a connection is in use, and may soon be closed while it is idle.
func (a *Asker) maySoonClose(k *Kept) bool {
	p := a.clientOf(k)
	return k.client == nil && a.inUseLately(k) && k.State == tcp.Established && k.isNear() && p.reset < maxReset &&
		a.noneNewFor >= p.patience()-watchFor && a.portOf(k)[0].idle < a.cfg.QuietFor
}

// giveUp is for how many times quietFor connections are watched of which none can be closed: that
// costs some percent of a processor.
const giveUp = 4

// waitsSince returns since when the next question waits for an idle connection: the latest question,
// or a second after the latest new connection.
func (a *Asker) waitsSince() ledger.Moment {
	since := a.now - a.noneNewFor + time.Second
	for _, p := range a.clients {
		since = max(since, p.asked)
	}
	return since
}

// Watching reports whether samples should be frequent.
func (a *Asker) Watching() bool {
	return a.now-a.waitsSince() < giveUp*a.cfg.QuietFor && slices.ContainsFunc(a.kept, a.maySoonClose)
}

// A client's next request goes to the connection that has been idle the longest, or the shortest.
// Those at both ends, a quarter each, are closed when they have been idle for rarelyIdle, or when
// nothing could be closed for waitForOthers: as measured, 24 connections of Go's Transport lost 5
// requests in 12 stops without this rule, and none in 24 with it. When nothing could be closed for
// waitForAll, those that are left may be too busy to be idle for longer than a jiffy.
const (
	rarelyIdle    = 120 * time.Millisecond
	waitForOthers = 500 * time.Millisecond
	waitForAll    = time.Second
)

// Idle returns the kept connections that are idle for certain, for MayClose. The first are those
// whose idle time is the median.
func (a *Asker) Idle() []*Kept {
	var idle []*Kept // by idle time
	for _, k := range a.kept {
		if a.isIdle(k) {
			byTime := func(a, b *Kept) int { return cmp.Compare(a.idleFor(), b.idleFor()) }
			at, _ := slices.BinarySearchFunc(idle, k, byTime)
			idle = slices.Insert(idle, at, k)
		}
	}
	waited := a.now - a.waitsSince()
	end := (len(idle) + 3) / 4
	if waited >= waitForOthers {
		end = 0
	}
	var may []*Kept
	for i, k := range idle {
		isEnd := min(i, len(idle)-1-i) < end
		isReserved := isEnd && k.idleFor() < rarelyIdle
		if !isReserved && k.isNear() && a.portOf(k).permits(k, waited >= waitForAll) {
			may = append(may, k)
		}
	}
	return fromTheMiddle(may)
}

// fromTheMiddle returns a list in the order of the distance from its middle.
func fromTheMiddle[T any](list []T) (ordered []T) {
	for i := range list {
		distance := (i + 1) / 2
		if i%2 == 0 {
			distance = -distance
		}
		ordered = append(ordered, list[(len(list)-1)/2+distance])
	}
	return ordered
}

// isIdle reports whether the latest sample shows an idle connection that was not closed.
func (a *Asker) isIdle(k *Kept) bool { return k.Seen == a.now && k.client == nil && k.answered() }

// MayClose reports whether a connection of Idle may be closed after the latest sample: the client
// may be asked, and of the connections that were closed no more than one is open beyond those
// that the server has closed in turn. A server may keep connections whose clients seem to have
// left, and answer no more.
func (a *Asker) MayClose(k *Kept) bool {
	open := a.count(func(k *Kept) bool { return k.client != nil && ledger.IsOpen(&k.Socket) && k.Seen == a.now })
	p := a.clientOf(k)
	leaving := 0
	if a.now-p.asked < slowToLeave {
		leaving = a.count(func(k *Kept) bool { return k.client == p && k.isLeaving() })
	}
	return open <= a.figures.Closed-open && p.mayBeAsked(leaving, a.noneNewFor)
}

// NoteClosed notes that a connection has been closed for reading. That is done once.
func (a *Asker) NoteClosed(k *Kept) {
	p := a.clientOf(k)
	p.noteClosed(a.now)
	k.client = p
	a.figures.Closed++
	a.addRequests(k.requests)
}

// AwaitsClients reports whether samples should have sockets in TIME_WAIT: those of clients that
// have closed connections in turn.
func (a *Asker) AwaitsClients() bool {
	return slices.ContainsFunc(a.kept, (*Kept).isLeaving)
}

// The silence after the last byte on connections that were closed.
const (
	minGaps    = 10 // mean gaps between their requests
	minSilence = time.Second
)

// Silence returns how long a silence after the last byte on closed connections must last. Their
// clients have chosen again: a further request can only come on a new connection, or on one that
// was not closed. Only thin traffic may have pauses that are longer.
func (a *Asker) Silence() time.Duration {
	if a.asked.requests == 0 {
		return a.cfg.QuietFor
	}
	return min(max(minSilence, minGaps*(a.asked.lastAt-ledger.Trigger)/time.Duration(a.asked.requests)), a.cfg.QuietFor)
}
