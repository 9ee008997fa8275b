package traffic

import "time"

// Verdict lists the conditions met at the latest sample. Drained implies Quiet, and Quiet
// implies Settled.
type Verdict struct {
	Settled   bool // no new connection for QuietFor
	Quiet     bool // Settled, no byte for QuietFor and no request in flight
	Drained   bool // Quiet, no open connection and no unsent byte
	Stuck     bool // connections wait to be accepted, and the program makes no progress
	NoSockets bool // neither a listener nor a connection
}

// Verdict returns the verdict on the latest sample. An incomplete sample meets no condition.
func (t *Tracker) Verdict() (v Verdict) {
	if !t.complete {
		return v
	}
	latest := t.activity(t.cfg.Probes == IgnoreProbes)
	y := &t.lastSample
	v.Settled = t.silentSince(latest.opened)
	v.Quiet = v.Settled && t.silentSince(latest.moved) && y.inFlight == 0
	v.Drained = v.Quiet && y.open == 0 && !y.unsent
	v.NoSockets = y.listeners == 0 && y.open == 0 && y.inFlight == 0
	noProgress := t.now.Sub(later(t.progress.at, y.moved))
	v.Stuck = y.queued > 0 && y.inFlight == 0 && noProgress >= max(stuckAfter, t.cfg.QuietFor)
	return v
}

// activity returns the latest activity, with or without patterns.
func (t *Tracker) activity(withoutPatterns bool) activity {
	a := t.closed
	a.add(t.lastSample.activity)
	for _, series := range t.probes {
		if series.period == 0 || !withoutPatterns {
			a.add(series.activity)
		}
	}
	return a
}

func (t *Tracker) silentSince(at time.Time) bool {
	return t.now.Sub(later(at, t.start)) >= t.cfg.QuietFor
}
