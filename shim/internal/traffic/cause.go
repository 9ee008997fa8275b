package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// relevant returns the latest activity for the condition of the hold.
func (t *Tracker) relevant(opened, moved moment) moment {
	if t.cfg.Until == stop.Settled {
		return opened
	}
	return max(opened, moved)
}

// noteActivity remembers the connection with the latest activity.
func (t *Tracker) noteActivity(c *ledger.Conn) {
	at := t.relevant(c.Opened, c.Moved)
	if !t.recent(at) {
		return
	}
	latest := &t.lastActive
	if found := t.seriesOf(c); found.period() > 0 {
		if t.leavesOut(found) {
			return
		}
		latest = &t.lastProbe
	}
	if *latest == nil || at > t.relevant((*latest).Opened, (*latest).Moved) {
		*latest = c
	}
}

// cause returns what the condition waits for: the first of a request that is silent,
// activity, clients in an accept queue, and open connections. If nothing of all that is in
// the sample, the cause of an earlier sample stays.
func (f *fold) cause(waiting Cause) Cause {
	latest := f.relevant(f.counted.opened, f.counted.moved)
	isActive := f.recent(latest)
	switch {
	case f.InFlight > 0 && f.cfg.Until != stop.Settled && (!isActive || f.silentSince(f.oldest.Moved)):
		oldest := causeOf(f.oldest, Requests, f.sockets.At)
		oldest.Connections = f.InFlight
		return oldest
	case isActive && f.isRecent(f.lastActive):
		return f.lastActivity(f.lastActive)
	case isActive && f.isRecent(f.lastProbe):
		return f.lastActivity(f.lastProbe)
	case isActive: // missed, or not shown by the source
		return Cause{Kind: Bytes, At: f.sockets.Time(latest)}
	case waiting.Connections > 0:
		return waiting
	case f.cfg.Until == stop.Drained && f.lasting.Connections > 0:
		return f.lasting
	case f.latest.Cause.Kind == NewConnections && f.seriesOf(f.lastActive).period() > 0: // as is known by now
		return f.lastActivity(f.lastActive)
	}
	return f.latest.Cause
}

// isRecent reports whether c, which may be nil, has recent activity.
func (t *Tracker) isRecent(c *ledger.Conn) bool {
	return c != nil && t.recent(t.relevant(c.Opened, c.Moved))
}

// causeOf returns what is known of a connection as a cause.
func causeOf(c *ledger.Conn, kind CauseKind, at time.Time) Cause {
	return Cause{Kind: kind, Peer: c.Remote.Addr(), Port: c.Local.Port(), At: at, Unanswered: c.Unanswered()}
}

// lastActivity returns the latest activity on a connection as a cause.
func (t *Tracker) lastActivity(c *ledger.Conn) Cause {
	at := t.relevant(c.Opened, c.Moved)
	cause := causeOf(c, Bytes, t.sockets.Time(at))
	period := t.seriesOf(c).period()
	switch {
	case period > 0:
		cause.Kind = Probe
		cause.Period = period
		cause.Received = c.Received
	case c.Opened != 0 && at-c.Opened < t.cfg.QuietFor:
		cause.Kind = NewConnections
		cause.Connections = t.newWithin(t.cfg.QuietFor)
	case c.Waited >= t.cfg.QuietFor:
		cause.Kind = Requests
		cause.Connections = 1
	}
	return cause
}
