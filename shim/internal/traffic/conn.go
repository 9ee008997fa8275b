package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// moment is a time, cheap to compare and to keep for each connection: nanoseconds since
// long before the trigger. The zero moment is before all others.
type moment int64

// trigger is the moment of the trigger.
const trigger moment = 1 << 61

// sinceTrigger returns the time from the trigger to m.
func (m moment) sinceTrigger() time.Duration { return time.Duration(m - trigger) }

// activity is when the latest connection came, and when the latest byte moved; 0: never.
type activity struct{ opened, moved moment }

func (a *activity) add(b activity) {
	a.opened = max(a.opened, b.opened)
	a.moved = max(a.moved, b.moved)
}

func (a *activity) last() moment { return max(a.opened, a.moved) }

// conn is a connection as the latest sample showed the socket.
type conn struct {
	activity // opened is zero for a connection older than the trigger, or on which no byte was received
	sample   uint32
	socket   remembered
	course   course
	turn     turn
	isNew    bool // came after the trigger
	noted    bool // by Tracker.noteOpened
	accepted bool
	parts    int    // samples in which bytes had been received, and none ever sent
	inFlight bool   // in the latest sample a request was in flight, or may have been
	waited   bool   // the last request was silent for QuietFor in the hold
	missedAt moment // of the first sample without the connection
}

// remembered is the part of the latest socket that the next one is compared with.
type remembered struct {
	port           uint16
	peer           netip.Addr
	received, sent uint64 // bytes; sent without bytes sent again
	queues         [2]uint32
}

// moves are the bytes of a connection since the previous sample.
type moves struct {
	received, sent uint64
	unseen         bool // bytes may have moved: the source shows no bytes
	read           bool // the program has read bytes
}

// served reports whether the program has read or sent a byte.
func (m *moves) served() bool { return m.read || m.sent > 0 }

// update adds the latest state of a connection's socket.
func (c *conn) update(s *tcp.Socket, now moment, known bool) moves {
	m := c.socket.update(s, known)
	c.moved = max(c.moved, m.lastByte(s, now, known))
	if c.isNew && !receivedNothing(s) && c.opened == 0 {
		c.opened = now
	}
	c.accepted = c.accepted || s.Inode != 0
	if m.received > 0 && c.socket.sent == 0 {
		c.parts++
	}
	return m
}

// unanswered reports whether the connection looks like a stream that the program never
// answers, such as a log's. It holds like any other, and the report names it.
func (c *conn) unanswered() bool { return c.parts >= 3 && c.socket.sent == 0 }

// update compares s with the previous socket of a connection, and remembers s. The counter
// of sent bytes includes bytes sent again, which are no activity. A source without
// counters shows only that a queue has changed: then a byte has moved. So may a byte on a
// connection reset by the program, of which the kernel keeps only the peer's address.
func (r *remembered) update(s *tcp.Socket, known bool) (m moves) {
	sent := s.Info.Sent - min(s.Info.Resent, s.Info.Sent)
	queues := [2]uint32{s.Unread, s.Unsent}
	isReset := s.Remote.Port() == 0
	switch {
	case isReset:
		m.unseen = true
	case s.HasInfo:
		m.received = s.Info.Received - min(r.received, s.Info.Received)
		m.sent = sent - min(r.sent, sent)
		m.read = known && uint64(s.Unread)+r.received < s.Info.Received+uint64(r.queues[0])
	default:
		m.unseen = !known || queues != r.queues
	}
	r.port = s.Local.Port()
	r.peer = s.Remote.Addr()
	r.received = max(r.received, s.Info.Received)
	r.sent = max(r.sent, sent)
	r.queues = queues
	return m
}

// lastByte returns when the last of the bytes moved, zero if no byte did. Bytes sent on a
// connection without a received byte are a greeting; further bytes are traffic.
func (m *moves) lastByte(s *tcp.Socket, now moment, known bool) (at moment) {
	if m.unseen {
		return now
	}
	if m.received > 0 && !receivedNothing(s) {
		at = now - moment(s.Info.LastReceived)
	}
	if m.sent > 0 && (known || !receivedNothing(s)) {
		at = max(at, now-moment(s.Info.LastSent))
	}
	return at
}
