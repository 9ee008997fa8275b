package stop

import "time"

// A hold that ends although requests still come ends at a lull: a moment without a
// request that the signal might cut. The samples are so frequent during the search that
// the signal follows the sample at once.

// Requests is what a sample shows of requests.
type Requests struct {
	Active bool // requests come, or are in flight
	AtRisk int  // requests that a signal might cut
	Stale  bool // the sample is too old to show a lull, or incomplete
}

// searchTime returns how long a hold that ends for a reason may search for a lull, 0 for
// reasons that leave no request in flight, or do not wait. The
// search before the ceiling begins at Gate.LullStart.
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
func (g *Gate) LullStart() time.Duration {
	if !g.conditional() {
		return g.Floor
	}
	return max(g.Floor, g.Ceiling-min(Ceiling.searchTime(), g.Ceiling/5))
}

// Searching reports whether a search for a lull is under way. Samples should then be as
// frequent as possible.
func (m *Machine) Searching() bool { return m.searchFor != "" }

// endAtLull ends a hold for a reason, or begins to search for a lull. The result is nil if
// the hold goes on.
func (m *Machine) endAtLull(now time.Time, why Reason) []Action {
	gate := &m.cfg.Gate
	until := m.record.TriggeredAt.Add(gate.Ceiling)
	limit := now.Add(why.searchTime())
	if !gate.conditional() { // a plain delay, whose end may be noticed late
		limit = m.record.TriggeredAt.Add(gate.Floor + why.searchTime())
	}
	if limit.Before(until) {
		until = limit
	}
	if !m.mayFindLull() || !now.Before(until) {
		return m.endHold(now, 0, why)
	}
	m.searchFor = why
	m.record.Lull.Sought = now
	m.due.searchEnd = until
	if !gate.conditional() {
		m.due.holdEnd = time.Time{}
	}
	return nil
}

// mayFindLull reports whether requests come, and a signal would follow the hold.
func (m *Machine) mayFindLull() bool { return m.requests.Active && len(m.record.Steps) > 0 }

// continueSearch ends the hold if the latest sample shows a lull.
func (m *Machine) continueSearch(now time.Time) []Action {
	if !m.Searching() || m.requests.Stale {
		return nil
	}
	m.record.Lull.InFlight = m.requests.AtRisk
	if m.requests.AtRisk > 0 {
		return nil
	}
	m.record.Lull.Found = true
	return m.endHold(now, 0, m.searchFor)
}

// abandonSearch goes on with the hold.
func (m *Machine) abandonSearch() {
	m.searchFor = ""
	m.record.Lull = Lull{}
	m.due.searchEnd = time.Time{}
}
