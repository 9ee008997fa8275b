package stop

import "time"

// A hold that ends although requests still come ends at a lull: a moment without a
// request that the signal might cut. During the search for one the samples follow each
// other at once. The first that shows a lull ends the hold, else the end of the search does.

// Requests is what a sample shows of requests.
type Requests struct {
	Active bool // requests come, or are in flight
	AtRisk int  // requests that a signal might cut
	Stale  bool // the sample is too old to show a lull, or incomplete
}

// searchTime returns how long a hold that ends for a reason may search for a lull, 0 for reasons that
// leave no request in flight, or do not wait. The search before the ceiling begins at Gate.LullStart.
func (r Reason) searchTime() time.Duration {
	switch r {
	case Kept, Ceiling:
		return time.Second
	case Elapsed, Settled:
		return time.Second / 2
	}
	return 0
}

// LullStart returns when the search for a lull begins, in a hold that no condition ends: a
// second before the ceiling, or a fifth of the ceiling if that is less, or at the end of a
// plain delay.
func (g Gate) LullStart() time.Duration {
	if !g.Conditional() {
		return g.Floor
	}
	return max(g.Floor, g.Ceiling-min(Ceiling.searchTime(), g.Ceiling/5))
}

// Searching reports whether a search for a lull is under way. Samples should then be as
// frequent as possible.
func (m *Machine) Searching() bool { return m.searchFor != "" }

// mayFindLull reports whether requests come, and a signal would follow the hold.
func (m *Machine) mayFindLull() bool { return m.sample.Active && len(m.record.Steps) > 0 }

// endAtLull ends a hold for a reason, or begins to search for a lull.
func (m *Machine) endAtLull(why Reason) {
	gate := &m.cfg.Gate
	from := m.now.Sub(m.record.TriggeredAt)
	if !gate.Conditional() {
		from = gate.Floor // the end of a plain delay may be noticed late
	}
	until := m.record.TriggeredAt.Add(min(from+why.searchTime(), gate.Ceiling))
	if !m.mayFindLull() || !m.now.Before(until) {
		m.endHold(why)
		return
	}
	m.searchFor = why
	m.record.Lull.Sought = true
	m.due[holdEnd] = until
}
