package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// activity is when the latest connection came, and when the latest byte moved.
type activity struct{ opened, moved time.Time }

func (a *activity) add(b activity) {
	a.opened = later(a.opened, b.opened)
	a.moved = later(a.moved, b.moved)
}

func (a *activity) last() time.Time { return later(a.opened, a.moved) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// conn is a connection as the latest sample showed the socket.
type conn struct {
	activity // opened is zero for a connection older than the trigger
	sample   uint32
	port     uint16
	peer     netip.Addr
	received uint64
	queues   [2]uint32
	accepted bool
	missedAt time.Time // of the first sample without the connection
}

// update adds the latest state of a connection's socket. The kernel's ages say when bytes
// moved. A source without ages shows only that a queue has changed: then a byte has moved
// just now. So may a byte on a connection reset by the program, of which the kernel keeps
// only the peer's address.
func (c *conn) update(s *tcp.Socket, now time.Time, known bool) {
	queues := [2]uint32{s.Unread, s.Unsent}
	isReset := s.Remote.Port() == 0
	switch {
	case isReset:
		c.moved = now
	case s.HasInfo:
		c.moved = later(c.moved, lastByte(s, now))
	case !known || queues != c.queues:
		c.moved = now
	}
	c.port = s.Local.Port()
	c.peer = s.Remote.Addr()
	c.received = max(c.received, s.Info.Received)
	c.queues = queues
	c.accepted = c.accepted || s.Inode != 0
}
