package traffic

import (
	"net/netip"
	"time"
)

// LeftOut counts what does not count as traffic.
type LeftOut struct {
	HalfOpen     int        // connections in SYN_RECV, in the sample with the most
	Bare         int        // new connections on which no byte was received
	Gone         int        // open connections whose peer no longer answers, in the latest sample
	OneWay       int        // open connections on which the program never sends, in the latest sample
	GivenUp      int        // requests silent for MaxSilence, in the latest sample
	GivenUpPeer  netip.Addr // of the one of GivenUp that has been silent longest; invalid: none
	Undetermined int        // connections silent for MaxSilence that may have been answered, in the latest sample; not in GivenUp
}

// CauseKind is the kind of a Cause.
type CauseKind uint8

// The kinds. The fields of Cause that each kind sets are in parentheses.
const (
	NoCause         CauseKind = iota
	NewConnections            // new connections (Peer, Port, At; Connections)
	Bytes                     // bytes on an open connection (Peer, Port, At; Unanswered)
	Requests                  // requests in flight (Peer and Port of the one silent longest; At, Connections, Undetermined)
	Probe                     // a possible health probe (Peer, Port, At, Period, Received)
	AcceptQueue               // connections that the program has not accepted (Peer of any, Port, At, Connections)
	OpenConnections           // connections that are open and idle (Peer of any, At, Connections)
)

// Cause is what kept a condition from being met last, for the report.
type Cause struct {
	Kind        CauseKind
	Peer        netip.Addr
	Port        uint16        // the local port
	At          time.Time     // the last activity; of Requests and what is open or waits, the latest sample with any
	Connections int           // how many; of NewConnections, how many in the last QuietFor
	Period      time.Duration // of a Probe
	Received    uint64        // of a Probe, bytes each time

	Undetermined bool // each of the Requests may have been answered
	Unanswered   bool // the program has never sent a byte on the connection of the Bytes
}

// causes remembers what kept the condition from being met.
type causes struct {
	last       Cause
	lastActive conn // the connection that was active last
	lastOpened conn // the latest new connection that counts
	lastOther  conn // likewise, probes aside
	lastKept   conn // the kept connection on which a byte moved last
	newRun     run  // of new connections, probes aside
	keptRun    run  // of bytes on kept connections, probes aside
	queued     bool // connections waited to be accepted in the previous sample
	halfOpen   int  // see LeftOut
	bare       int  // closed connections on which no byte was received
	kept       Kept
}

// run is activity without a pause of QuietFor.
type run struct{ began, latest moment }

// extend adds activity at a time. Activity after a pause begins a new run.
func (r *run) extend(at moment, pause time.Duration) {
	if at <= max(r.latest, trigger) {
		return
	}
	if r.latest == 0 || time.Duration(at-r.latest) >= pause {
		r.began = at
	}
	r.latest = at
}

// noteActivity remembers a connection that was active last.
func (t *Tracker) noteActivity(next *conn) {
	t.noteKept(next)
	t.noteOpened(next)
	c := &t.causes
	at := next.last()
	if at > trigger && at > c.lastActive.last() {
		c.lastActive = *next
	}
	if next.opened <= c.lastOpened.opened {
		return
	}
	c.lastOpened = *next
	if t.periodOf(next) == 0 {
		c.lastOther = *next
	}
}

// noteKept remembers the latest bytes on a kept connection: one that is older than the
// trigger, or than QuietFor.
func (t *Tracker) noteKept(next *conn) {
	isNew := next.opened != 0 && time.Duration(next.moved-next.opened) < t.cfg.QuietFor
	if isNew || next.moved <= t.causes.keptRun.latest || next.course.beat.regular(1) {
		return
	}
	t.causes.keptRun.extend(next.moved, t.cfg.QuietFor)
	t.causes.lastKept = *next
}

// outlasts reports whether bytes on kept connections have held for longer than what has
// held since the moment other, by QuietFor or more: a probe every ten seconds does not
// hold among clients that keep their connections, nor does a slow request.
func (t *Tracker) outlasts(other moment) bool {
	kept := &t.causes.keptRun
	return t.recent(kept.latest) && time.Duration(max(other, trigger)-kept.began) >= t.cfg.QuietFor
}

// keptCause returns the bytes on kept connections as a cause. A response after a long wait
// begins a run, unless bytes moved on other connections meanwhile.
func (t *Tracker) keptCause() Cause {
	kept := &t.causes.keptRun
	cause := t.causeOf(&t.causes.lastKept, kept.latest)
	if cause.Kind == Requests && time.Duration(kept.latest-kept.began) >= t.cfg.QuietFor {
		cause.Kind = Bytes
		cause.Connections = 0
	}
	return cause
}

// findCause finds out what the condition waits for: the first of new connections, a
// request that is silent, bytes on kept connections, other activity, clients in an accept
// queue, and open connections. Bytes on kept connections that have held for longer come
// before the former two. If nothing of all that is in the sample, the cause of an earlier
// sample stays.
func (t *Tracker) findCause(longest queue) {
	y := &t.lastSample
	c := &t.causes
	c.halfOpen = max(c.halfOpen, y.halfOpen)
	counted := t.counted()
	latest := counted.last()
	if t.cfg.Until == UntilSettled {
		latest = counted.opened
	}
	active := t.recent(latest)
	others := t.activity(y.activity, (*rhythm).regular)
	c.newRun.extend(others.opened, t.cfg.QuietFor)
	newCame := t.recent(others.opened)
	bytesHold := t.cfg.Until != UntilSettled
	requestWaits := bytesHold && y.inFlight > 0 && (!active || t.silentSince(y.oldest.moved))
	switch {
	case bytesHold && newCame && t.outlasts(c.newRun.began):
		c.last = t.keptCause()
	case newCame:
		c.last = t.causeOf(&c.lastOther, others.opened)
	case requestWaits && t.outlasts(y.oldest.moved):
		c.last = t.keptCause()
	case requestWaits:
		c.last = Cause{Kind: Requests, Peer: y.oldest.peer, Port: y.oldest.port, At: t.time(t.now), Connections: y.inFlight, Undetermined: !y.certain}
	case bytesHold && t.recent(c.keptRun.latest):
		c.last = t.keptCause()
	case active && !bytesHold:
		c.last = t.causeOf(&c.lastOpened, latest)
	case active:
		c.last = t.causeOf(&c.lastActive, latest)
	case longest.length > 0 && c.queued:
		c.last = Cause{Kind: AcceptQueue, Peer: t.queues.peer, Port: longest.port, At: t.time(t.now), Connections: longest.length}
	case t.cfg.Until == UntilDrained && y.lasting > 0:
		c.last = Cause{Kind: OpenConnections, Peer: y.lastingPeer, At: t.time(t.now), Connections: y.lasting}
	}
	c.queued = longest.length > 0
}

// recent reports whether something since the trigger happened less than QuietFor ago.
func (t *Tracker) recent(at moment) bool { return at > trigger && !t.silentSince(at) }

// causeOf returns the activity of a connection as a cause.
func (t *Tracker) causeOf(c *conn, at moment) Cause {
	cause := Cause{Kind: Bytes, Peer: c.socket.peer, Port: c.socket.port, At: t.time(at)}
	if period := t.periodOf(c); period > 0 {
		cause.Kind = Probe
		cause.Period = period
		cause.Received = c.socket.received
		if c.course.beat.regular(1) {
			cause.Received = c.course.bytes
		}
		return cause
	}
	switch {
	case c.opened != 0 && time.Duration(at-c.opened) < t.cfg.QuietFor:
		cause.Kind = NewConnections
		cause.Connections = t.arrivals.last(t.cfg.QuietFor)
	case c.waited:
		cause.Kind = Requests
		cause.Connections = 1
	}
	return cause
}

// periodOf returns the period of a possible probe, 0 of other connections.
func (t *Tracker) periodOf(c *conn) time.Duration {
	if c.course.beat.regular(1) {
		return c.course.beat.gap
	}
	series := t.probes.of(c)
	if series == nil || c.opened == 0 {
		return 0
	}
	if r := series.find((*rhythm).regular); r != nil {
		return series.period(r)
	}
	return 0
}
