package traffic

import (
	"time"
)

// Verdict is what holds at the last look. Each condition implies those before it.
type Verdict struct {
	Settled, Quiet, Drained bool
	Stuck                   bool // connections wait to be accepted, and nothing moves
	Deserted                bool // there is neither a listener nor a connection
}

// Verdict is the judgement at the last look. Where the observer is lost, nothing
// holds.
func (j *Judge) Verdict() (v Verdict) {
	if !j.judged {
		return v
	}
	a, t := j.total(j.cfg.IgnoreProbes), &j.last
	v.Settled = j.silentSince(a.opened)
	v.Quiet = v.Settled && j.silentSince(a.moved) && t.inFlight == 0
	v.Drained = v.Quiet && t.open == 0 && !t.unsent
	v.Deserted = t.listeners == 0 && t.open == 0 && t.inFlight == 0
	v.Stuck = t.queued > 0 && t.inFlight == 0 && j.now.Sub(later(j.stuck, t.moved)) >= max(hung, j.cfg.QuietFor)
	return v
}

// total is the latest activity of all there is, or of all apart from patterns.
func (j *Judge) total(apart bool) activity {
	a := j.activity
	a.add(j.last.activity)
	for _, b := range j.beats {
		if b.period == 0 || !apart {
			a.add(b.activity)
		}
	}
	return a
}

func (j *Judge) silentSince(at time.Time) bool {
	return j.now.Sub(later(at, j.start)) >= j.cfg.QuietFor
}
