package traffic

import "time"

// Verdict lists the conditions met at the latest sample. Drained implies Quiet, and Quiet
// implies Settled.
type Verdict struct {
	Settled   bool // no new connection for QuietFor
	Quiet     bool // Settled, no byte for QuietFor and no request in flight
	Drained   bool // Quiet, no open connection and no unsent byte
	Kept      bool // not Quiet, and clients that never let go are all that remains
	Stuck     bool // clients wait to be accepted or read, and the program makes no progress
	NoSockets bool // neither a listener nor a connection

	Incomplete bool // the sample shows nothing

	Active bool // not Quiet since the trigger, for traffic or requests: a signal might cut a request
	AtRisk int  // requests that a signal at the time of the sample might have cut
}

// Verdict returns the verdict on the latest sample. An incomplete sample meets no condition.
func (t *Tracker) Verdict() (v Verdict) {
	if !t.complete {
		return Verdict{Incomplete: true}
	}
	latest := t.withoutProbes(t.latest.counted)
	latest.add(activity{t.queues.activeAt, t.queues.activeAt})
	latest.add(activity{t.sourceEnded, t.sourceEnded})
	y := &t.latest
	v.Settled = t.silentSince(latest.opened)
	v.Quiet = v.Settled && t.silentSince(latest.moved) && y.inFlight == 0
	v.Drained = v.Quiet && y.lasting == 0 && !y.unsent
	v.Kept = !v.Quiet && t.isKept()
	v.Active = t.recent(latest.last()) || y.inFlight > 0
	v.AtRisk = y.atRisk
	v.NoSockets = y.listeners == 0 && y.open == 0 && y.inFlight == 0
	noProgress := time.Duration(t.now-t.queues.progressAt) >= max(stuckAfter, t.cfg.QuietFor)
	v.Stuck = t.queues.waiting && y.served == 0 && noProgress
	return v
}

// KeptFor is for how many times QuietFor no new connection has come if clients that never
// let go are all that remains: clients that keep connections through a balancer of the
// transport layer, which moves only new connections.
const KeptFor = 8

// isKept reports whether clients that never let go are all that remains: bytes move on open
// connections, and for KeptFor times QuietFor no new connections have come, but for single
// ones, QuietFor apart, which would not prolong a hold by themselves. A slow request may
// still be answered.
func (t *Tracker) isKept() bool {
	y := &t.latest
	a := &t.arrivals
	newest := max(a.crowded, t.queues.activeAt, t.sourceEnded)
	return !y.withoutInfo && t.silence(newest) >= KeptFor*t.cfg.QuietFor && t.silentSince(a.latest) &&
		t.recent(y.counted.moved) && y.slow == 0
}
