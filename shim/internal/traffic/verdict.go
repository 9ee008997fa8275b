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

	Active  bool // not Quiet since the trigger, for traffic or requests: a signal might cut a request
	AtRisk  int  // requests that a signal at the time of the sample might have cut
	Unclear int  // requests of AtRisk that have probably been answered
}

// Verdict returns the verdict on the latest sample. An incomplete sample meets no condition.
func (t *Tracker) Verdict() (v Verdict) {
	if !t.complete {
		return Verdict{Incomplete: true}
	}
	latest := t.counted()
	latest.add(activity{t.queues.activeAt, t.queues.activeAt})
	latest.add(activity{t.sourceEnded, t.sourceEnded})
	y := &t.lastSample
	v.Settled = t.silentSince(latest.opened)
	v.Quiet = v.Settled && t.silentSince(latest.moved) && y.inFlight == 0
	v.Drained = v.Quiet && y.lasting == 0 && !y.unsent
	v.Kept = !v.Quiet && t.isKept()
	v.Active = t.recent(latest.last()) || y.inFlight > 0
	v.AtRisk = y.atRisk
	v.Unclear = y.unclear
	v.NoSockets = y.listeners == 0 && y.open == 0 && y.inFlight == 0
	v.Stuck = t.progress.waiting && y.served == 0 && time.Duration(t.now-t.progress.at) >= max(stuckAfter, t.cfg.QuietFor)
	return v
}

// counted returns the latest activity that counts.
func (t *Tracker) counted() activity { return t.activity(t.lastSample.counted, t.leftOut) }

// leftOut reports whether short connections at a rhythm of several interleaved probes are left
// out in the latest sample.
func (t *Tracker) leftOut(r *rhythm, interleaved int) bool {
	return !t.tooManyProbes && r.probing(&t.cfg, t.now, interleaved)
}

// leavesOut reports whether the bytes of a kept connection are left out. Many clients call at a
// rhythm: only the user can know that this one is a probe.
func (t *Tracker) leavesOut(c *conn) bool {
	return t.cfg.Probes == IgnoreProbes && c.course.beat.regular(1)
}

// countProbes finds out whether what may be left out patiently is too much for probes.
// The clients that remain when others have gone are no probes, either.
func (t *Tracker) countProbes() {
	if t.cfg.Probes != IgnoreProbesPatiently || t.tooManyProbes || len(t.probes) <= maxProbes {
		return
	}
	n := 0
	for _, series := range t.probes {
		if series.find(t.leftOut) != nil {
			n++
		}
	}
	t.tooManyProbes = n > maxProbes
}

// activity returns the latest activity, given that of open connections, without the
// short connections at the rhythms that are left out.
func (t *Tracker) activity(open activity, leftOut func(r *rhythm, interleaved int) bool) activity {
	a := t.closed
	a.add(open)
	for _, series := range t.probes {
		if r := series.find(leftOut); r != nil {
			a.add(r.first.before)
		} else {
			a.add(series.activity)
		}
	}
	return a
}

func (t *Tracker) silentSince(at moment) bool { return t.silence(at) >= t.cfg.QuietFor }
