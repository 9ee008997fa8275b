package traffic

import (
	"net/netip"
	"time"
)

// CauseKind is the kind of a Cause.
type CauseKind uint8

// The kinds. The fields of Cause that each kind sets are in parentheses.
const (
	NoCause         CauseKind = iota
	NewConnections            // new connections (Peer, Port, At; Connections)
	Bytes                     // bytes on an open connection (Peer, Port, At, Unanswered)
	Requests                  // requests in flight (Peer and Port of the one silent longest; At, Connections, Unanswered)
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
	Unanswered  bool          // of Bytes and Requests: a stream on which the program has never sent a byte
}

// cause remembers what kept the condition from being met.
type cause struct {
	last   Cause
	active activeCause // the latest activity that counts, possible health probes aside
	probe  activeCause // the latest of a possible health probe
	queued bool        // connections waited to be accepted in the previous sample
}

type activeCause struct {
	Cause
	at moment
}

// noteActivity remembers the latest activity.
func (t *Tracker) noteActivity(c *conn) {
	at := c.last()
	if t.cfg.Until == UntilSettled {
		at = c.opened
	}
	mayBeProbe := c.opened != 0 || c.rhythm.regular(1)
	if at <= trigger || at <= t.cause.active.at && (at <= t.cause.probe.at || !mayBeProbe) || t.leavesOut(c) {
		return
	}
	found := t.probes.of(c)
	if found != nil && c.opened != 0 {
		if _, leftOut := found.leftOut(&t.cfg, t.now); leftOut {
			return
		}
	}
	latest := &t.cause.active
	next := t.causeOf(c, found, at)
	if next.Kind == Probe {
		latest = &t.cause.probe
	}
	if at > latest.at {
		*latest = activeCause{next, at}
	}
}

// causeOf returns the activity of a connection as a cause; found is its series of short
// connections, or nil.
func (t *Tracker) causeOf(c *conn, found *series, at moment) Cause {
	cause := Cause{Kind: Bytes, Peer: c.peer, Port: c.port, At: t.time(at)}
	switch {
	case c.rhythm.regular(1):
		cause.Kind = Probe
		cause.Period = c.rhythm.gap
		cause.Received = c.rhythm.bytes
	case found != nil && c.opened != 0 && found.period() > 0:
		cause.Kind = Probe
		cause.Period = found.period()
		cause.Received = c.received
	case c.opened != 0 && time.Duration(at-c.opened) < t.cfg.QuietFor:
		cause.Kind = NewConnections
	case c.waited:
		cause.Kind = Requests
		cause.Connections = 1
		cause.Unanswered = c.unanswered()
	default:
		cause.Unanswered = c.unanswered()
	}
	return cause
}

// findCause finds out what the condition waits for: the first of a request that is silent,
// activity, clients in an accept queue, and open connections. If nothing of all that is in
// the sample, the cause of an earlier sample stays.
func (t *Tracker) findCause(longest queue) {
	y := &t.latest
	c := &t.cause
	counted := t.withoutProbes(y.counted)
	latest := counted.last()
	if t.cfg.Until == UntilSettled {
		latest = counted.opened
	}
	active := t.recent(latest)
	now := t.time(t.now)
	switch {
	case y.inFlight > 0 && t.cfg.Until != UntilSettled && (!active || t.silentSince(y.oldest.moved)):
		o := y.oldest
		c.last = Cause{Kind: Requests, Peer: o.peer, Port: o.port, At: now, Connections: y.inFlight}
		c.last.Unanswered = o.unanswered()
	case active && t.recent(c.active.at):
		c.last = c.active.Cause
		if c.last.Kind == NewConnections {
			c.last.Connections = t.arrivals.last(t.cfg.QuietFor)
		}
	case active && t.recent(c.probe.at):
		c.last = c.probe.Cause
	case active: // missed, or not shown by the source
		c.last = Cause{Kind: Bytes, At: t.time(latest)}
	case longest.length > 0 && c.queued:
		c.last = Cause{Kind: AcceptQueue, Peer: t.queues.peer, Port: longest.port, At: now, Connections: longest.length}
	case t.cfg.Until == UntilDrained && y.lasting > 0:
		c.last = Cause{Kind: OpenConnections, Peer: y.lastingPeer, At: now, Connections: y.lasting}
	}
	c.queued = longest.length > 0
}
