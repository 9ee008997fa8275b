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
	missedAt moment // of the first sample without the connection
	isNew    bool   // came after the trigger
	accepted bool

	port           uint16
	peer           netip.Addr
	received, sent uint64 // bytes; sent without bytes sent again
	queues         [2]uint32
	paused         time.Duration // of minPause or more between bytes received, as long as none was sent

	judgment
	inFlight bool // in the latest sample a request was in flight, or may have been
	waited   bool // the last request was silent for QuietFor in the hold
	rhythm   byteRhythm
}

// moves are the bytes of a connection since the previous sample.
type moves struct {
	received, sent uint64
	unseen         bool // bytes may have moved: the source shows no bytes
	read           bool // the program has read bytes
}

// served reports whether the program has read or sent a byte.
func (m *moves) served() bool { return m.read || m.sent > 0 }

// update compares s with the previous socket of a connection, and remembers s. The counter
// of sent bytes includes bytes sent again, which are no activity. A source without
// counters shows only that a queue has changed: then a byte has moved. So may a byte on a
// connection reset by the program, of which the kernel keeps only the peer's address.
func (c *conn) update(s *tcp.Socket, now moment, known bool) (m moves) {
	sent := s.Info.Sent - min(s.Info.Resent, s.Info.Sent)
	queues := [2]uint32{s.Unread, s.Unsent}
	isReset := s.Remote.Port() == 0
	switch {
	case isReset:
		m.unseen = true
	case s.HasInfo:
		m.received = s.Info.Received - min(c.received, s.Info.Received)
		m.sent = sent - min(c.sent, sent)
		m.read = known && uint64(s.Unread)+c.received < s.Info.Received+uint64(c.queues[0])
	default:
		m.unseen = !known || queues != c.queues
	}
	c.port = s.Local.Port()
	c.peer = s.Remote.Addr()
	c.received = max(c.received, s.Info.Received)
	c.sent = max(c.sent, sent)
	c.queues = queues
	before := c.moved
	c.moved = max(c.moved, m.lastByte(s, now, known))
	if pause := time.Duration(c.moved - before); m.received > 0 && before != 0 && pause >= minPause {
		c.paused += pause
	}
	c.accepted = c.accepted || s.Inode != 0
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

// A stream that nobody answers, such as a log's, has paused for minPauses in all, in pauses
// of at least minPause each. It holds like any other, and the report names it.
const (
	minPause  = 900 * time.Millisecond
	minPauses = 1800 * time.Millisecond
)

// unanswered reports whether the connection looks like a stream that the program never
// answers.
func (c *conn) unanswered() bool { return c.sent == 0 && c.paused >= minPauses }

// receivedNothing reports whether no byte ever came from the peer, as far as the source
// shows bytes. A FIN may be counted as a byte, and is no segment with data.
func receivedNothing(s *tcp.Socket) bool {
	return s.HasInfo && (s.Info.Received == 0 || s.Info.Received == 1 && s.Info.Segments == 0)
}
