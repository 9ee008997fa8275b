package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// CauseKind is the kind of a Cause.
type CauseKind uint8

// The kinds. The fields of Cause that each kind sets are in parentheses.
const (
	NoCause         CauseKind = iota
	NewConnections            // new connections (Peer, Port, At; Connections)
	Bytes                     // bytes on an open connection (Peer, Port, At, Unanswered)
	Requests                  // requests in flight (Peer, Port of the one silent longest; At, Connections, Unanswered)
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

// relevant returns the latest activity for the condition of the hold.
func (t *Tracker) relevant(a activity) moment {
	if t.cfg.Until == stop.Settled {
		return a.Opened
	}
	return max(a.Opened, a.Moved)
}

// causeOf returns what is known of a connection as a cause.
func causeOf(c *ledger.Conn, kind CauseKind, at time.Time) Cause {
	return Cause{Kind: kind, Peer: c.Remote.Addr(), Port: c.Local.Port(), At: at, Unanswered: c.Unanswered()}
}

// noteActivity remembers the latest activity.
func (t *Tracker) noteActivity(c *ledger.Conn) {
	at := t.relevant(c.Activity)
	if !t.recent(at) {
		return
	}
	next := causeOf(c, Bytes, t.sample.Time(at))
	if c.Opened != 0 {
		if found := t.seriesOf(c); found != nil {
			if t.leavesOutSeries(found) {
				return
			}
			next.Period = found.period()
		}
	}
	latest := &t.active
	switch {
	case next.Period > 0:
		next.Kind = Probe
		next.Received = c.Received
		next.Unanswered = false
		latest = &t.probing
	case c.Opened != 0 && at-c.Opened < t.cfg.QuietFor:
		next.Kind = NewConnections
		t.newest = c
	case c.Waited >= t.cfg.QuietFor:
		next.Kind = Requests
		next.Connections = 1
	}
	if next.At.After(latest.At) {
		*latest = next
	}
}

// cause returns what the condition waits for: the first of a request that is silent,
// activity, clients in an accept queue, and open connections. If nothing of all that is in
// the sample, the cause of an earlier sample stays.
func (t *Tracker) cause(waiting Cause) Cause {
	y := &t.draft
	latest := t.relevant(y.activity)
	isActive := t.recent(latest)
	now := t.sample.At
	switch {
	case y.InFlight > 0 && t.cfg.Until != stop.Settled && (!isActive || t.silentSince(y.oldest.Moved)):
		oldest := causeOf(y.oldest, Requests, now)
		oldest.Connections = y.InFlight
		return oldest
	case isActive && t.recent(t.sample.Moment(t.active.At)):
		active := t.active
		if active.Kind == NewConnections {
			active.Connections = t.arrivals.last(t.cfg.QuietFor)
		}
		return active
	case isActive && t.recent(t.sample.Moment(t.probing.At)):
		return t.probing
	case isActive: // missed, or not shown by the source
		return Cause{Kind: Bytes, At: t.sample.Time(latest)}
	case waiting.Connections > 0:
		waiting.At = now
		return waiting
	case t.cfg.Until == stop.Drained && y.lasting.Connections > 0:
		y.lasting.At = now
		return y.lasting
	}
	return t.latest.Cause
}

// recognize makes new connections a probe if the newest was one, as later ones have shown.
func (t *Tracker) recognize(c *Cause) {
	if c.Kind != NewConnections {
		return
	}
	if found := t.seriesOf(t.newest); found != nil && found.period() > 0 {
		c.Kind, c.Period, c.Received = Probe, found.period(), t.newest.Received
	}
}
