package health

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
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
func (c *client) worth() int {
	switch {
	case c.phase == lingering:
		return 0
	case !c.spoke:
		return 1
	}
	return 2
}

// admit takes in a new client, and resets another client if that leaves no free
// slot. What the client has already sent is read at once, so that a request
// counts for the client before the next connection is accepted.
func (l *Listener) admit(fd int, from netip.Addr) {
	c := l.freeSlot()
	c.conn.fd, c.from = fd, peerOf(from)
	c.moved, c.deadline = l.now, l.now.Add(l.limits.begin)
	unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	c.phase = asking
	if l.during() == Pass && len(l.targets) > 0 {
		c.phase = connecting
	}
	if l.freeSlot() == nil {
		l.evict(c)
	}
	if c.phase == connecting {
		l.connect(c)
	}
	l.serve(c, true, false)
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

// evict resets a client other than keep, and reports whether there was one.
func (l *Listener) evict(keep *client) bool {
	c := victim(l.clients[:], keep)
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
