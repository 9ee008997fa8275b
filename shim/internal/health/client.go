package health

import (
	"net/netip"
	"time"
)

// phase is the state of a client.
type phase uint8

const (
	free       phase = iota // no client
	connecting              // to the target
	relaying                // between client and target
	reading                 // the head of a request that is answered here
	closing                 // the answer is sent, and may not have been read yet
)

// socket is a socket of the poll loop.
type socket struct {
	fd        int // -1: none
	pollIndex int // index in the poll set; -1: not polled
}

var noSocket = socket{fd: -1, pollIndex: -1}

// client is a connection to the listener and, if relayed, its connection to the
// target.
type client struct {
	slot        int // index in the loop's clients and in the list of proxied connections
	phase       phase
	from        peer
	conn        socket
	target      socket
	targetIndex int  // in the listener's targets
	up          flow // from the client; also holds the head of a request
	down        flow // to the client
	hasSent     bool // the client has sent a byte
	answered    bool // the last byte went to the client
	lastByte    time.Time
	deadline    time.Time
}

// clear frees the slot; the buffers are kept for the next client.
func (c *client) clear() {
	*c = client{slot: c.slot, conn: noSocket, target: noSocket, up: c.up.cleared(), down: c.down.cleared()}
}

// rank orders the clients of one peer: the lowest rank is reset first.
type rank int

const (
	served rank = iota // the client has its answer
	silent             // the client has sent no byte yet
	inProgress
)

func (c *client) rank() rank {
	switch {
	case c.phase == closing:
		return served
	case !c.hasSent:
		return silent
	}
	return inProgress
}

// admit takes a new client. If no slot is left free, a client is reset. Bytes that
// the new client has already sent are read at once, so that the request raises the
// client's rank before the next connection is accepted. The connection to the target
// is made later, by connectAdmitted.
func (l *Listener) admit(fd int, from netip.Addr) {
	c := l.freeSlot()
	c.conn.fd = fd
	c.from = peerOf(from)
	c.lastByte = l.now
	c.deadline = l.now.Add(l.timeouts.setup)
	c.phase = reading
	if l.currentMode() == Pass && len(l.targets) > 0 {
		c.phase = connecting
	}
	if l.freeSlot() == nil {
		l.makeRoom(c)
	}
	l.serve(c, true, false)
}

// makeRoom resets a client for a new client. A peer that already has the most clients
// does not displace its own requests in progress: then the new client is reset.
// Otherwise a flood of requests would connect to the target and reset, over and over.
func (l *Listener) makeRoom(newcomer *client) {
	c := victim(l.clients[:], newcomer)
	protected := c.rank() == inProgress && l.now.Sub(c.lastByte) < l.timeouts.protection
	if protected && c.from.network == newcomer.from.network {
		c = newcomer
	}
	l.evict(c)
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

// evictOne resets the client that is first in line to be reset, and reports whether
// any client existed.
func (l *Listener) evictOne() bool {
	c := victim(l.clients[:], nil)
	if c == nil {
		return false
	}
	l.evict(c)
	return true
}

// evict resets a client. A client that was sent its answer is closed instead.
func (l *Listener) evict(c *client) { l.drop(c, c.phase != closing) }

// drop closes both connections of a client, and frees its slot.
func (l *Listener) drop(c *client, reset bool) {
	closeSocket(c.conn.fd, reset)
	l.closeTarget(c, reset)
	c.clear()
}

// closeTarget closes the connection to the target, if any.
func (l *Listener) closeTarget(c *client, reset bool) {
	if c.target.fd < 0 {
		return
	}
	closeSocket(c.target.fd, reset)
	l.proxied.markClosed(c.slot, time.Now()) // l.now would be before the close
	c.target = noSocket
}

// touch records that a byte has moved. Only while relaying does a byte extend the
// deadline: the other phases have one deadline each.
func (l *Listener) touch(c *client) {
	c.lastByte = l.now
	if c.phase != relaying {
		return
	}
	c.deadline = l.now.Add(l.timeouts.idle)
	if c.up.eof || c.down.eof {
		l.limitHalfClosed(c)
	}
}

// limitHalfClosed sets the deadline for the other half of a half-closed connection.
func (l *Listener) limitHalfClosed(c *client) {
	c.deadline = l.now.Add(l.timeouts.setup)
}
