package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// activity is when a connection last came, and when a byte last moved.
type activity struct{ opened, moved time.Time }

func (a *activity) add(b activity) {
	a.opened, a.moved = later(a.opened, b.opened), later(a.moved, b.moved)
}

func (a *activity) last() time.Time { return later(a.opened, a.moved) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// conn is an open connection, as the last look saw it.
type conn struct {
	activity // opened is zero where it was there before the first look
	look     uint32
	port     uint16
	peer     netip.Addr
	received uint64
	queues   [2]uint32
	accepted bool
	missed   time.Time // by the first look that did not see it any more
}

// update is what is new of a connection. The kernel tells when bytes moved; where
// it does not, a queue that has changed has moved just now. So may a connection have
// that the program has reset: the kernel forgets all but the peer's address.
func (c *conn) update(s *tcp.Socket, now time.Time, known bool) {
	queues := [2]uint32{s.Unread, s.Unsent}
	switch {
	case s.Remote.Port() == 0: // reset
		c.moved = now
	case s.HasInfo:
		c.moved = later(c.moved, moved(s, now))
	case !known || queues != c.queues:
		c.moved = now
	}
	c.port, c.peer, c.received, c.queues = s.Local.Port(), s.Remote.Addr(), max(c.received, s.Info.Received), queues
	c.accepted = c.accepted || s.Inode != 0
}
