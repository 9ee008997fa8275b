package traffic

import (
	"time"
)

// Verdict is what holds at the last look. Each condition implies those before it.
type Verdict struct {
	Settled, Quiet, Drained bool
	Stuck                   bool // connections wait to be accepted, and nothing moves
	NoSockets               bool // there is neither a listener nor a connection
}

// Verdict is the judgement at the last look. Where the observer is lost, nothing
// holds.
func (j *Tracker) Verdict() (v Verdict) {
	if !j.complete {
		return v
	}
	a, t := j.total(j.cfg.IgnoreProbes), &j.lastSample
	v.Settled = j.silentSince(a.opened)
	v.Quiet = v.Settled && j.silentSince(a.moved) && t.inFlight == 0
	v.Drained = v.Quiet && t.open == 0 && !t.unsent
	v.NoSockets = t.listeners == 0 && t.open == 0 && t.inFlight == 0
	v.Stuck = t.queued > 0 && t.inFlight == 0 && j.now.Sub(later(j.lastProgress, t.moved)) >= max(stuckAfter, j.cfg.QuietFor)
	return v
}

// total is the latest activity of all there is, or of all apart from patterns.
func (j *Tracker) total(apart bool) activity {
	a := j.activity
	a.add(j.lastSample.activity)
	for _, b := range j.probes {
		if b.period == 0 || !apart {
			a.add(b.activity)
		}
	}
	return a
}

func (j *Tracker) silentSince(at time.Time) bool {
	return j.now.Sub(later(at, j.start)) >= j.cfg.QuietFor
}
