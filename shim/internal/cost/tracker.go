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

	// Before the first end, by noteServing: what tells clients' resets from those of others.
	busiest int // the most new connections in a sample
	stray   int // resets lately that no connection explains
	strayAt ledger.Moment
}

// port is a local port.
type port struct {
	end      *End          // nil: it listens, or has never been followed
	followed bool          // listens, or has listened and ended
	ignored  bool          // has listened, and is not followed
	open     int           // connections that the server has not closed, in the latest complete sample
	listened ledger.Moment // the latest sample in which it was followed and listened; 0: it does not listen
	closedAt ledger.Moment // when the latest listener closed, by its event
	resetAt  ledger.Moment // when the program first reset a connection
}

// closed is a connection that the server has closed with a request in flight, or while it streamed.
type closed struct {
	port     *port
	at       ledger.Moment
	streamed bool // and no request was in flight
	doubt    int  // of a stream that may have ended by itself: 1, or -1 if its last byte came with the end
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

// Judge adds a sample, of which package traffic has said what was seen, and returns the result.
func (t *Tracker) Judge(sample *ledger.Sample, seen *traffic.Sample) Result {
	t.sample = sample
	r := &t.result
	r.Returned = nil
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
		t.updatePorts()
	}
	t.countCut()
	switch {
	case len(r.Ends) > 0:
		r.CutAtLeast = r.CutAtLeast || !sample.MissedAt.IsZero()
		r.NeedsTimeWait = len(t.closed) > 0
		t.countRefused()
	case !sample.Incomplete: // nothing that was counted matters
		if len(r.Returned) == 0 { // else clients were refused, and the sample before the end is long ago
			t.noteServing(seen.Accepted)
		}
		*r = Result{Before: *seen, Listening: r.Listening, Returned: r.Returned}
		t.expected = int(sample.Resets) + uncounted
	}
	r.Streams = seen.Streams
	return *r
}

// addOther adds a socket that is no connection: a listener, or what the kernel keeps of a connection.
func (t *Tracker) addOther(s *ledger.Other) {
	p, key := t.port(s.Local.Port()), s.Ends()
	switch c := t.closed[key]; {
	case s.State == tcp.Close:
		p.closedAt = t.sample.Moment(s.At)
	case s.State == tcp.Listen && s.Side == ledger.Ignored:
		p.ignored = true
	case s.State == tcp.Listen:
		p.followed = true
		p.listened = t.sample.Now
	case c == nil || c.count == nil:
	case s.State == tcp.TimeWait:
		delete(t.closed, key)
	default:
		c.shown, c.finAcked = true, false
	}
}

// port returns a port, after adding it if it is unknown.
func (t *Tracker) port(number uint16) *port {
	if t.ports[number] == nil {
		t.ports[number] = &port{}
	}
	return t.ports[number]
}

// addCut adds a connection that has closed, of which s was the last to show the state, if that was with a
// request in flight, or in a stream. It reports whether it was.
func (t *Tracker) addCut(c *ledger.Conn, s *tcp.Socket, inFlight, streamed bool) bool {
	if !inFlight && !streamed {
		return false
	}
	cut := &closed{port: &t.elsewhere, at: max(c.Ended, c.Seen), streamed: !inFlight}
	if !inFlight && s.State == tcp.Close { // an event, which comes with the client's ACK
		cut.doubt = 1
		if s.Info.LastSent < atOnce+2*s.Info.RTT {
			cut.doubt = -1
		}
	}
	if p := t.port(s.Local.Port()); p.followed {
		cut.port = p
		cut.finAcked = s.Info.Acked+s.Info.Resent > s.Info.Sent // the FIN counts as a byte
	}
	t.closed[s.Ends()] = cut
	return true
}

// atOnce is how long after the last byte a server closes a connection that is complete.
const atOnce = 10 * time.Millisecond

// recently is how long others that reset connections are remembered.
const recently = 10 * time.Second

// noteServing notes how many clients came in a sample before the first end, and resets that are none of
// theirs. An event that explains one may come a sample later.
func (t *Tracker) noteServing(accepted int) {
	t.busiest = max(t.busiest, accepted-t.result.Before.Accepted)
	n := int(t.sample.Resets) - t.expected
	if t.expected == 0 { // nothing to compare with
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

// inFlight reports whether a request is in flight on an open connection.
func (t *Tracker) inFlight(s *tcp.Socket) bool {
	return s.Unread > 0 || s.Info.NotSent > 0 || t.waits(s)
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

// addConn adds a connection, and reports whether it ended with a reset that refused nobody. An event has the
// last tcp_info; where many connections close at once, events are lost. A connection that the program has
// reset has no remote port, counters or time of receipt (tcp_disconnect in net/ipv4/tcp.c): one that was never
// accepted is refused; others are no client's, such as those to servers that HAProxy resets when it exits.
func (t *Tracker) addConn(c *ledger.Conn) (wasReset bool) {
	last, p := cmp.Or(c.Was, &c.Socket), t.port(c.Local.Port())
	isReset := c.Remote.Port() == 0
	wasAccepted := c.Accepted && last.State != tcp.Close && c.Side != ledger.Ignored
	switch {
	case c.Fate == ledger.Lost && wasAccepted:
		t.addCut(c, last, t.inFlight(last), c.Streams(last.Info.LastSent))
	case c.Fate != ledger.Closed:
	case isReset && !p.followed:
		// A client here whom we refuse looks the same, but never had an ACK (connect(2)).
		return c.Info.LastAcked < c.Info.LastReceived
	case isReset && !wasAccepted:
		// A program that does so as long as it listens, such as one that sets SO_LINGER to 0, refuses nobody:
		// those that the end of its listener resets were hardly waiting to be accepted.
		p.resetAt = cmp.Or(p.resetAt, t.sample.Now)
		return p.listened > p.resetAt
	case isReset:
		since := c.Ended - c.Seen
		inFlight := t.inFlight(last) && (last.Info.NotSent > 0 || c.Info.LastSent >= since)
		return !t.addCut(c, last, inFlight, c.Streams(last.Info.LastSent+since))
	case !p.followed:
		waits := c.Info.LastSent < c.Info.LastReceived && !p.ignored && !t.port(c.Remote.Port()).followed
		t.addCut(c, &c.Socket, waits, false) // a request of a proxy, whose response will be reset
	case c.Side != ledger.Ignored:
		t.addCut(c, &c.Socket, t.wasCut(c), c.Streams(c.Info.LastSent))
	}
	return false
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
