package ledger

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Moment is a time, cheap to compare and to keep for each connection: the time since long
// before the trigger. The zero Moment is before all others.
type Moment = time.Duration

// Trigger is the moment of the trigger.
const Trigger Moment = 1 << 61

// Side says whose business a socket is.
type Side uint8

// The sides.
const (
	Clients Side = iota // a listener of the container, or a connection to it
	Own                 // a connection of the container to itself
	Ignored             // by Config, or of a port that does not count
)

// Fate is what a sample says about a connection.
type Fate uint8

// The fates. From Closed on the connection is over.
const (
	Shown   Fate = iota // the socket is in the sample
	Missing             // is not in the sample, and an event may yet report its end
	Closed              // an event has reported the end since the sample before
	Lost                // has been missing for Config.LostAfter: taken for closed
)

// Conn is a connection as the latest sample or the event of its end has shown the socket. A
// connection that is shown, and has ended before the sample does, is in the sample twice: first
// as it was shown.
type Conn struct {
	// By Ledger.Observe and Ledger.Closed: what there is of the connection.
	tcp.Socket              // in the state tcp.Close if Closed
	Was         *tcp.Socket // the latest that was open; nil as long as the connection is
	Side        Side
	New         bool   // came after the trigger
	Seen        Moment // the latest sample that shows the connection; 0: none
	Listed      Moment // the latest sample that shows it, or what the kernel keeps of it
	Ended       Moment // when the event was read, if Closed
	hasPingPong bool   // Info.PingPong was read

	// By Ledger.End, too.
	Fate     Fate
	missedAt Moment // the first sample after Seen

	// By update: what has moved. The counters are the highest that were shown.
	Before     Before        // the sample
	Received   uint64        // bytes
	Sent       uint64        // bytes, those sent again counted once
	In, Out    Data          // since the sample before
	Accepted   bool          // by the program
	Served     bool          // the program has read or sent a byte since the sample before
	Unseen     bool          // bytes may have moved that the source does not show
	Opened     Moment        // when the first byte came; 0: none has, or the connection is not New
	Moved      Moment        // when the latest byte moved; 0: none has
	SendsSince Moment        // the first byte sent after the last one received, as samples show; 0: none
	sendPause  time.Duration // the longest pause since then between bytes sent, as samples show
	paused     time.Duration // of minPause or more between bytes received, as long as none was sent

	// By judge: whether a request is in flight.
	Request    RequestState  // of the last request
	AtServer   RequestState  // the same as the program knows it: what it has sent need not be acknowledged
	WaitsSince Moment        // when the last byte moved before that waited, PINGs aside
	Waited     time.Duration // the longest silence of the last request in the hold
	request    judgment

	// By Note… and Decide, for good.
	Shut     bool // lameduck has closed the connection for reading
	Notified bool // lameduck has asked the client to open no further stream
	decision decision
}

// decision says whether both ends are the container's.
type decision struct{ isMade, isOwn bool }

// Before is what the sample before showed of a connection.
type Before struct {
	Opened   Moment
	Moved    Moment
	Seen     Moment // 0: no earlier sample has shown the connection
	Accepted bool
	AtServer RequestState
}

// Data is what has moved in one direction.
type Data struct {
	Bytes    uint64
	Segments uint32
}

// counters returns the bytes received and sent, as s shows them. Bytes sent again do not count.
func (c *Conn) counters(s *tcp.Socket) (received, sent uint64) {
	return max(c.Received, s.Info.Received), max(c.Sent, s.Info.Sent-min(s.Info.Resent, s.Info.Sent))
}

// update compares s with the connection as it was before, and remembers s.
func (c *Conn) update(s *tcp.Socket, now Moment) {
	c.Before = Before{c.Opened, c.Moved, c.Seen, c.Accepted, c.AtServer}
	received, sent := c.counters(s)
	c.In = Data{received - c.Received, s.Info.Segments - c.Info.Segments}
	c.Out = Data{sent - c.Sent, s.Info.SentSegments - c.Info.SentSegments}
	c.Received, c.Sent = received, sent
	c.Accepted = c.Accepted || s.Inode != 0
	c.move(s, now)
	if c.IsOpen() && !s.IsOpen() {
		was := c.Socket
		c.Was = &was
	}
	c.Socket = *s
	if c.New && c.Opened == 0 && (c.Unseen || !ReceivedNothing(s)) {
		c.Opened = now
	}
}

// move notes when bytes have moved, before c.Socket is s. A source without counters shows only that a
// queue has changed, and of a connection reset by the program the kernel keeps only the peer's
// address: bytes may have moved unseen. Bytes sent before the first one received, a greeting, are no activity.
func (c *Conn) move(s *tcp.Socket, now Moment) {
	isKnown, isReset := c.Seen != 0, s.Remote.Port() == 0
	c.Served, c.Unseen = false, false
	if isReset || !s.HasInfo {
		c.Unseen = isReset || !isKnown || s.Unread != c.Unread || s.Unsent != c.Unsent
		if c.Unseen {
			c.Moved = max(c.Moved, now)
		}
		return
	}
	received, sent := c.In.Bytes > 0, c.Out.Bytes > 0
	if received && !ReceivedNothing(s) {
		c.Moved = max(c.Moved, now-s.Info.LastReceived)
	}
	if sent && (isKnown || !ReceivedNothing(s)) {
		c.Moved = max(c.Moved, now-s.Info.LastSent)
	}
	pause := c.Moved - c.Before.Moved
	switch {
	case received:
		c.SendsSince, c.sendPause = 0, 0
		if sent && s.Info.LastSent < s.Info.LastReceived {
			c.SendsSince = c.Moved
		}
		if c.Before.Moved != 0 && pause >= minPause {
			c.paused += pause
		}
	case sent && c.SendsSince == 0:
		c.SendsSince = c.Moved
	case sent:
		c.sendPause = max(c.sendPause, pause)
	}
	c.Served = sent || isKnown && uint64(s.Unread) < c.In.Bytes+uint64(c.Unread)
}

// A stream that nobody answers, such as a log's, has paused for minPauses in all, in pauses
// of at least minPause each. It holds like any other, and the report names it.
const (
	minPause  = 900 * time.Millisecond
	minPauses = 1800 * time.Millisecond
)

// Unanswered reports whether the connection looks like a stream that the program never
// answers.
func (c *Conn) Unanswered() bool { return c.Sent == 0 && c.paused >= minPauses }

// minSendPause is the shortest pause between two bytes sent that makes a response a stream.
const minSendPause = 50 * time.Millisecond

// Streams reports whether a response goes on and on, of which the last byte was sent so long ago: no longer
// than the response has paused before.
func (c *Conn) Streams(silent time.Duration) bool {
	return c.sendPause >= minSendPause && silent <= c.sendPause
}

// ReceivedNothing reports whether no byte ever came from the peer, as far as the source
// shows bytes. A FIN may be counted as a byte, and is no segment with data.
func ReceivedNothing(s *tcp.Socket) bool {
	return s.HasInfo && (s.Info.Received == 0 || s.Info.Received == 1 && s.Info.Segments == 0)
}
