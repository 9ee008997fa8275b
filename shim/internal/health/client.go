package health

import (
	"net/netip"
	"time"
)

// phase is what a client waits for.
type phase uint8

const (
	free       phase = iota // no client
	connecting              // to the target
	relaying
	asking    // for the head of a request that is answered here
	lingering // the answer is sent, and may not have been read yet
)

// end is a socket of a client.
type end struct {
	fd     int // -1: none
	polled int // index in the poll set; -1: not in it
}

var noEnd = end{fd: -1, polled: -1}

// client is a connection to the listener and, if relayed, its connection to the
// target.
type client struct {
	index    int // in the listener's clients and in the ledger
	phase    phase
	from     peer
	conn     end
	target   end
	try      int  // index of the target
	up, down flow // from the client, to the client; up.buf also holds the head of a request
	spoke    bool // the client has sent a byte
	answered bool // the last byte went to the client
	moved    time.Time
	deadline time.Time
}

// empty is the client of a free slot; the buffers are kept for the next client.
func (c *client) empty() client {
	return client{index: c.index, conn: noEnd, target: noEnd, up: c.up.renewed(), down: c.down.renewed()}
}

// worth ranks the clients of one peer.
type worth int

const (
	served worth = iota // the client has its answer
	silent              // the client has said nothing yet
	inProgress
)

func (c *client) worth() worth {
	switch {
	case c.phase == lingering:
		return served
	case !c.spoke:
		return silent
	}
	return inProgress
}

// admit takes in a new client. If that leaves no free slot, a client is reset. What
// the new client has already sent is read at once, so that a request counts for the
// client before the next connection is accepted. The connection to the target is
// made later, by connectAdmitted.
func (l *Listener) admit(fd int, from netip.Addr) {
	c := l.freeSlot()
	c.conn.fd, c.from = fd, peerOf(from)
	c.moved, c.deadline = l.now, l.now.Add(l.limits.begin)
	c.phase = asking
	if l.during() == Pass && len(l.targets) > 0 {
		c.phase = connecting
	}
	if l.freeSlot() == nil {
		l.makeRoom(c)
	}
	l.serve(c, true, false)
}

// makeRoom resets a client for a new one. A peer with the most clients already does
// not displace its own requests in progress: then the new client is reset. Otherwise
// a flood of requests would connect to the target and reset, over and over.
func (l *Listener) makeRoom(newcomer *client) {
	c := victim(l.clients[:], newcomer)
	if c.from.network == newcomer.from.network && c.worth() == inProgress && l.now.Sub(c.moved) < l.limits.tenure {
		c = newcomer
	}
	l.drop(c, c.phase != lingering)
}

// freeSlot returns a slot without a client, or nil.
func (l *Listener) freeSlot() *client {
	for i := range l.clients {
		if l.clients[i].phase == free {
			return &l.clients[i]
		}
	}
	return nil
}

// evict resets the client that is the first to be reset, and reports whether there
// was one.
func (l *Listener) evict() bool {
	c := victim(l.clients[:], nil)
	if c == nil {
		return false
	}
	l.drop(c, c.phase != lingering)
	return true
}

// drop closes both connections of a client, and frees its slot.
func (l *Listener) drop(c *client, reset bool) {
	hangUp(c.conn.fd, reset)
	l.leaveTarget(c, reset)
	*c = c.empty()
}

// leaveTarget closes the connection to the target.
func (l *Listener) leaveTarget(c *client, reset bool) {
	if c.target.fd >= 0 {
		hangUp(c.target.fd, reset)
		l.ledger.leave(c.index, time.Now()) // l.now would be before the close
		c.target = noEnd
	}
}

// touch notes that a byte has moved.
func (l *Listener) touch(c *client) {
	c.moved = l.now
	switch {
	case c.phase != relaying: // one deadline for the whole phase
	case c.up.eof || c.down.eof:
		c.deadline = l.now.Add(l.limits.begin)
	default:
		c.deadline = l.now.Add(l.limits.idle)
	}
}
