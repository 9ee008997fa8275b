package cost

import (
	"cmp"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Tracker follows the ports that listen from sample to sample. The port of a socket that the
// ledger ignores is not followed.
type Tracker struct {
	result Result
	sample *ledger.Sample // the current

	ports     map[uint16]*port
	elsewhere port               // of servers to which requests were sent from here
	closed    map[uint64]*closed // by ConnKey
	expected  int                // OutRsts, had no connection been refused since the first end of a port
	accepted  int                // connections up to the latest complete sample

	// Before the first end, by noteServing: what tells clients' resets from those of others.
	busiest int // the most new connections in a sample
	stray   int // resets lately that no connection explains
	strayAt ledger.Moment
}

// port is a local port.
type port struct {
	end      *End          // nil: it listens, or has never been followed
	ignored  bool          // has listened, and is not followed
	open     int           // connections that the server has not closed, in the latest complete sample
	listened ledger.Moment // the latest sample in which it was followed and listened; 0: it does not listen
	closedAt ledger.Moment // when the latest listener closed, by its event
	resetAt  ledger.Moment // when the program first reset a connection
}

// isFollowed reports whether a port listens, or has listened and ended.
func (p *port) isFollowed() bool { return p.listened != 0 || p.end != nil }

// closed is a connection that the server has closed with a request in flight, or while it streamed.
type closed struct {
	port     *port
	at       ledger.Moment
	streamed bool // and no request was in flight
	doubtful bool // the stream may have ended by itself
	complete bool // it probably has: its last byte came with the end
	finAcked bool // both ends know that the server's has closed: if the kernel keeps nothing, the client has left
	count    *int // of the end that has closed it, in which it is counted; nil: not counted

	// The latest sample shows what the kernel keeps of the connection until the client closes it
	// too (TIME_WAIT) or sends more, which is answered with a reset. It keeps nothing if the client
	// has closed first.
	shown bool
}

// justBefore is how long before its port ends, or the last of its connections is closed, a connection may be
// cut by the same end: the processes of a server do not end all at once.
const justBefore = 250 * time.Millisecond

// LateEvent is how late the event of a destroyed socket may be: events have low priority.
const LateEvent = 500 * time.Millisecond

// New returns a Tracker. No port listens yet.
func New() *Tracker { return &Tracker{ports: map[uint16]*port{}, closed: map[uint64]*closed{}} }

// NeedsTimeWait reports whether the next sample needs the sockets in TIME_WAIT.
func (t *Tracker) NeedsTimeWait() bool { return len(t.closed) > 0 && len(t.result.Ends) > 0 }

// Judge adds a sample, of which package traffic has said what was seen, and returns the result.
func (t *Tracker) Judge(sample *ledger.Sample, seen *traffic.Sample) Result {
	t.sample = sample
	r := &t.result
	r.Returned = nil
	r.Streams = seen.Streams
	for i := range sample.Others {
		t.addOther(&sample.Others[i])
	}
	uncounted := 0 // resets that the counter does not include yet
	for _, c := range sample.Conns {
		if t.addConn(c) {
			t.expected++
			if c.Ended >= sample.Now {
				uncounted++
			}
		}
	}
	if !sample.Incomplete {
		opened := seen.Accepted - t.accepted
		t.accepted = seen.Accepted
		t.updatePorts()
		t.countOpen()
		t.countLeftovers()
		if len(r.Ends) == 0 { // nothing that was counted matters
			t.noteServing(opened)
			*r = Result{Before: *seen, Listening: r.Listening, Returned: r.Returned, Streams: r.Streams}
			t.expected = int(sample.Resets) + uncounted
		}
	}
	t.countCut()
	t.countRefused()
	return *r
}

// addOther adds a socket that is no connection.
func (t *Tracker) addOther(s *ledger.Other) {
	p := t.port(s.Local.Port())
	switch {
	case s.State == tcp.Close:
		p.closedAt = t.readAt(t.sample.Moment(s.At))
	case s.State != tcp.Listen:
		t.noteLeftover(&s.Socket)
		return
	case s.Side == ledger.Ignored:
		p.ignored = true
	default:
		p.listened = t.sample.Now
	}
}

// port returns a port, after adding it if it is unknown.
func (t *Tracker) port(number uint16) *port {
	if t.ports[number] == nil {
		t.ports[number] = &port{}
	}
	return t.ports[number]
}

// readAt returns when an event was read: of one that came during the sample, no earlier than TERM,
// which may have come since the sample began.
func (t *Tracker) readAt(at ledger.Moment) ledger.Moment {
	if at < t.sample.Now {
		return at
	}
	return max(at, t.sample.Moment(t.sample.ReadAt))
}

// noteLeftover notes that the sample shows a socket, if the server has closed it.
func (t *Tracker) noteLeftover(s *tcp.Socket) {
	key := s.Ends()
	c := t.closed[key]
	switch {
	case c == nil || c.count == nil:
	case s.State == tcp.TimeWait:
		delete(t.closed, key)
	default:
		c.shown, c.finAcked = true, false
	}
}

// addConn adds a connection, and reports whether it ended with a reset that refused nobody. Where
// many connections close at once, events are lost.
func (t *Tracker) addConn(c *ledger.Conn) (wasReset bool) {
	switch c.Fate {
	case ledger.Shown:
		t.noteLeftover(&c.Socket)
	case ledger.Closed:
		return t.addClosed(c)
	case ledger.Lost:
		if last := cmp.Or(c.Was, &c.Socket); c.Side != ledger.Ignored && c.Accepted {
			t.addCut(last, t.inFlight(last), c.Streams(last.Info.LastSent), c.Seen)
		}
	}
	return false
}

// addCut adds a connection that has closed, if that was with a request in flight, or in a stream. It
// reports whether it was.
func (t *Tracker) addCut(s *tcp.Socket, inFlight, streamed bool, at ledger.Moment) bool {
	if !inFlight && !streamed {
		return false
	}
	isEvent := s.State == tcp.Close // which comes with the client's ACK
	c := &closed{port: &t.elsewhere, at: at, streamed: !inFlight, doubtful: isEvent && !inFlight}
	c.complete = s.Info.LastSent < atOnce+2*s.Info.RTT
	if p := t.port(s.Local.Port()); p.isFollowed() {
		c.port = p
		c.finAcked = isEvent && s.Info.Acked+s.Info.Resent > s.Info.Sent // the FIN counts as a byte
	}
	t.closed[s.Ends()] = c
	return true
}

// atOnce is how long after the last byte a server closes a connection that is complete.
const atOnce = 10 * time.Millisecond

// recently is how long others that reset connections are remembered.
const recently = 10 * time.Second

// noteServing notes how many clients came in a sample before the first end, and resets that are none of
// theirs. An event that explains one may come a sample later.
func (t *Tracker) noteServing(opened int) {
	t.busiest = max(t.busiest, opened)
	n := int(t.sample.Resets) - t.expected
	if t.expected == 0 || len(t.result.Returned) > 0 { // nothing to compare with, or clients were refused
		n = 0
	}
	t.stray = max(t.stray+n, 0)
	if n > 0 {
		t.strayAt = t.sample.Now
	}
	if t.sample.Now-t.strayAt > recently {
		t.stray = 0
	}
}

// mostRefused returns how many connections the clients of a server can have been refused in the time
// since its end: each that was open, and as many new ones eight times a second as in the busiest
// sample, which is twice as often as there are samples, and a few.
func (t *Tracker) mostRefused(since time.Duration) int {
	return t.result.Before.Open + (8*t.busiest+10)*(1+int(since/time.Second))
}

// inFlight reports whether a request is in flight on an open connection.
func (t *Tracker) inFlight(s *tcp.Socket) bool {
	return s.IsOpen() && s.HasInfo && (s.Unread > 0 || s.Info.NotSent > 0 || t.waits(s))
}

// waits reports whether the last request on a connection with empty queues waits for a
// response. If the kernel's times do not show that, the request is answered, unless segments
// say that there is one request more than responses.
func (t *Tracker) waits(s *tcp.Socket) bool {
	usual := t.sample.Usual
	switch ledger.LastRequest(s, usual) {
	case ledger.InFlight:
		return true
	case ledger.Tie:
		return s.Info.Segments > s.Info.SentSegments+usual.Excess
	}
	return false
}

// addClosed adds the event of a connection's end, with its last tcp_info, and reports whether it
// ended with a reset that refused nobody. A connection that the program has reset has no remote
// port, counters or time of receipt (tcp_disconnect in net/ipv4/tcp.c): one that was never accepted is
// refused; others are no client's, such as those to servers that HAProxy resets when it exits.
func (t *Tracker) addClosed(c *ledger.Conn) (wasReset bool) {
	before, p := c.Was, t.port(c.Local.Port())
	isReset := c.Remote.Port() == 0
	wasAccepted := before != nil && c.Before.Accepted && c.Side != ledger.Ignored
	at := t.readAt(c.Ended)
	switch {
	case isReset && !p.isFollowed():
		// A client here whom we refuse looks the same, but never had an ACK (connect(2)).
		return before != nil || c.Info.LastAcked < c.Info.LastReceived
	case isReset && !wasAccepted:
		return t.noteReset(p)
	case isReset:
		since := c.Ended - c.Before.Seen
		inFlight := t.inFlight(before) && (before.Info.NotSent > 0 || c.Info.LastSent >= since)
		return !t.addCut(before, inFlight, c.Streams(before.Info.LastSent+since), at)
	case !p.isFollowed():
		waits := c.Info.LastSent < c.Info.LastReceived && !p.ignored && !t.port(c.Remote.Port()).isFollowed()
		t.addCut(&c.Socket, waits, false, at) // a request of a proxy, whose response will be reset
	case c.Side != ledger.Ignored:
		t.addCut(&c.Socket, t.wasCut(c), c.Streams(c.Info.LastSent), at)
	}
	return false
}

// noteReset notes that the program of a port resets a connection, and reports whether it does so as long
// as it listens, such as one that sets SO_LINGER to 0: those that the end of its listener resets were
// hardly waiting to be accepted.
func (t *Tracker) noteReset(p *port) (asItListens bool) {
	if p.resetAt == 0 {
		p.resetAt = t.sample.Now
	}
	return p.listened > p.resetAt
}

// wasCut reports whether a connection was closed with a request in flight. What has moved since
// the latest sample decides, and else that sample. A few bytes on which the server has closed at once are
// the client's answer to a few of the server, as when a WebSocket is closed.
func (t *Tracker) wasCut(c *ledger.Conn) bool {
	received, sent := c.In.Bytes, c.Out.Bytes
	isFew := received > 0 && max(received, sent) <= ledger.MaxControlBytes
	if isFew && c.Sent > 0 && c.Info.LastReceived < atOnce+2*c.Info.RTT {
		return false
	}
	if before := c.Was; before != nil && c.Info.Segments == before.Info.Segments &&
		(before.Info.NotSent > 0 || c.Info.SentSegments == before.Info.SentSegments) {
		return t.inFlight(before)
	}
	last := c.Socket
	last.State = tcp.Established // as it was: the state of an event is always tcp.Close
	return t.waits(&last)
}
