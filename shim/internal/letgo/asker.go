package letgo

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Figures are for the report.
type Figures struct {
	Closed   int // kept connections that were closed while idle
	CameBack int // of their peers, how many have connected since
}

// Asker follows the connections that clients keep, from sample to sample.
type Asker struct {
	quietFor   time.Duration // how long silence must last
	now        time.Duration
	noneNewFor time.Duration // in the latest sample; zero in an incomplete one
	watching   bool
	inUse      int // connections that were not closed

	kept    map[uint64]*Kept // by cookie
	idle    []*Kept          // in the latest sample
	clients map[netip.Addr]*client
	ports   map[uint16]*port

	open    int // closed connections that the server has not closed in turn
	leaving int // closed connections that the client has not closed in turn
	asked   struct {
		requests int           // on closed connections
		lastAt   time.Duration // the last of them
	}
	figures Figures
}

// New returns the Asker of a hold whose silence must last for quietFor.
func New(quietFor time.Duration) *Asker {
	return &Asker{
		quietFor: quietFor, kept: map[uint64]*Kept{}, clients: map[netip.Addr]*client{}, ports: map[uint16]*port{},
	}
}

// Figures returns the figures up to the latest sample.
func (a *Asker) Figures() Figures { return a.figures }

// Update tells the Asker about a sample.
func (a *Asker) Update(now time.Duration, sample *traffic.Sample, conns []traffic.Conn) {
	a.now = now
	a.idle = a.idle[:0]
	a.open = 0
	for i := range conns {
		c := &conns[i]
		if c.New {
			a.noteNew(c.Peer)
		}
		a.follow(c)
	}
	if sample.Incomplete {
		a.noneNewFor = 0
		return
	}
	a.noneNewFor = sample.NoneNewFor
	a.leaving = 0
	for _, p := range a.clients {
		p.leaving = 0
	}
	a.watching = false
	a.inUse = 0
	for cookie, k := range a.kept {
		switch {
		case k.seen != now:
			k.noteMissing()
			delete(a.kept, cookie)
		case k.leaving:
			a.leaving++
			if now-k.closedAt < slowToLeave {
				k.client.leaving++
			}
		case k.client == nil:
			a.watching = a.watching || a.maySoonClose(k)
			if k.conn.InUse {
				a.inUse++
			}
		}
	}
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
func (a *Asker) follow(c *traffic.Conn) {
	k := a.kept[c.Cookie]
	isOpen := c.State == tcp.Established || c.State == tcp.CloseWait
	if k == nil {
		if !isOpen || c.Cookie == 0 {
			return
		}
		k = &Kept{conn: *c, seen: a.now, since: a.now, unclear: true, unequal: true}
		a.kept[c.Cookie] = k
	}
	k.noteEnd(c)
	if !isOpen {
		k.seen = a.now
		return
	}
	before := k.requests
	pause, isClean := k.update(c, a.now)
	a.portOf(k).note(pause, isClean)
	switch {
	case k.client != nil:
		a.open++
		a.count(k, before)
	case k.answered():
		a.idle = append(a.idle, k)
	}
}

// count counts the requests on a closed connection.
func (a *Asker) count(k *Kept, before int) {
	if k.requests > before {
		a.asked.requests += k.requests - before
		a.asked.lastAt = a.now
	}
}

func (a *Asker) portOf(k *Kept) *port {
	p := a.ports[k.conn.Port]
	if p == nil {
		p = &port{idle: minIdle}
		a.ports[k.conn.Port] = p
	}
	return p
}

// clientOf returns the client of a connection, a new one if no connection of the peer was closed.
func (a *Asker) clientOf(k *Kept) *client {
	if p := a.clients[k.conn.Peer]; p != nil {
		return p
	}
	return &client{}
}

// watchFor is how long before the first question connections are watched: in dense traffic that
// is time for the cycles that a port has to show.
const watchFor = 700 * time.Millisecond

// maySoonClose reports whether a connection is in use, and may soon be closed while it is idle.
func (a *Asker) maySoonClose(k *Kept) bool {
	p := a.clientOf(k)
	return k.conn.InUse && k.conn.State == tcp.Established && k.isNear() && p.reset < maxReset &&
		a.noneNewFor >= p.patience()-watchFor && a.portOf(k).idle < a.quietFor
}

// Watching reports whether samples should be frequent.
func (a *Asker) Watching() bool { return a.watching }

// few is a number of connections in use, all of which may be hardly ever idle for longer than
// minIdle. Of more, one that has been idle for rarelyIdle is less likely to be used next: as measured,
// 24 connections of Go's Transport lost 0.2 requests a stop, and 0.4 after 40 ms.
const (
	few        = 4
	rarelyIdle = 120 * time.Millisecond
)

// Idle returns the kept connections that are idle for certain, for MayClose. The first are those
// whose idle time is the median, since a client's next request goes to the connection that has
// been idle the longest, or the shortest.
func (a *Asker) Idle() []*Kept {
	least := minIdle
	if a.inUse > few {
		least = rarelyIdle
	}
	var idle []*Kept // by idle time
	for _, k := range a.idle {
		p := a.portOf(k)
		if k.idleFor() < max(p.idle, least) || p.clean < enoughCycles || !k.isNear() {
			continue
		}
		at, _ := slices.BinarySearchFunc(idle, k, func(a, b *Kept) int { return cmp.Compare(a.idleFor(), b.idleFor()) })
		idle = slices.Insert(idle, at, k)
	}
	ordered := make([]*Kept, 0, len(idle))
	for low, high := (len(idle)-1)/2, (len(idle)-1)/2+1; len(ordered) < len(idle); low, high = low-1, high+1 {
		if low >= 0 {
			ordered = append(ordered, idle[low])
		}
		if high < len(idle) {
			ordered = append(ordered, idle[high])
		}
	}
	return ordered
}

// MayClose reports whether a connection of Idle may be closed after the latest sample: the client
// may be asked, and of the connections that were closed no more than one is open beyond those
// that the server has closed in turn. A server may keep connections whose clients seem to have
// left, and answer no more.
func (a *Asker) MayClose(k *Kept) bool {
	return a.open <= a.figures.Closed-a.open && a.clientOf(k).mayBeAsked(a.noneNewFor)
}

// NoteClosed notes that a connection has been closed for reading. That is done once.
func (a *Asker) NoteClosed(k *Kept) {
	p := a.clientOf(k)
	a.clients[k.conn.Peer] = p
	p.noteClosed()
	k.client = p
	k.closedAt = a.now
	k.leaving = true
	a.leaving++
	a.open++
	a.figures.Closed++
	a.count(k, 0)
}

// AwaitsClients reports whether samples should have sockets in TIME_WAIT: those of clients that
// have closed connections in turn.
func (a *Asker) AwaitsClients() bool { return a.leaving > 0 }

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
		return a.quietFor
	}
	return min(max(minSilence, minGaps*a.asked.lastAt/time.Duration(a.asked.requests)), a.quietFor)
}
