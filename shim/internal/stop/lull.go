package stop

import "time"

// A hold that ends although requests still come ends at a lull: a moment without a
// request that the signal might cut. The samples are so frequent during the search that
// the signal follows the sample at once.

// Requests is what a sample shows of requests.
type Requests struct {
	Active  bool // requests come, or are in flight
	AtRisk  int  // requests that a signal might cut
	Unclear int  // requests of AtRisk that have probably been answered
	TooMany bool // connections: a sample takes longer than a lull lasts
	Stale   bool // the sample is too old to show a lull, or incomplete
}

// risk returns how bad a moment is for the signal: 0 at a lull. Requests that are unclear
// weigh a quarter.
func (r *Requests) risk() int { return 4*r.AtRisk - 3*r.Unclear }

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

// search is a search for a lull.
type search struct {
	reason Reason // why the hold ends after the search; "": no search
	began  time.Time
	until  time.Time
	risks  [64]int // samples by their risk, 63 or more in the last
	last   int     // the risk of the latest sample
	rose   bool    // the risk has risen: requests come
}

// Searching reports whether a search for a lull is under way. Samples should then be as
// frequent as possible.
func (m *Machine) Searching() bool { return m.search.reason != "" }

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
	m.record.Lull.TooMany = m.requests.TooMany && m.requests.Active
	if !m.mayFindLull() || !now.Before(until) {
		return m.endHold(now, 0, why)
	}
	m.search = search{reason: why, began: now, until: until}
	m.record.Lull.Sought = now
	m.due.searchEnd = until
	if !gate.conditional() {
		m.due.holdEnd = time.Time{}
	}
	return nil
}

// mayFindLull reports whether requests come, a signal would follow the hold, and samples
// are quick enough to show a lull.
func (m *Machine) mayFindLull() bool {
	return m.requests.Active && !m.requests.TooMany && len(m.record.Steps) > 0
}

// continueSearch ends the hold if the latest sample shows a lull, or as few requests as can
// be hoped for.
func (m *Machine) continueSearch(now time.Time) []Action {
	if !m.Searching() || m.requests.Stale {
		return nil
	}
	m.record.Lull.InFlight = m.requests.AtRisk
	if !m.search.ends(now, m.requests.risk()) {
		return nil
	}
	m.record.Lull.Found = m.requests.AtRisk == 0
	return m.endHold(now, 0, m.search.reason)
}

// abandonSearch goes on with the hold.
func (m *Machine) abandonSearch() {
	m.search = search{}
	m.record.Lull = Lull{}
	m.due.searchEnd = time.Time{}
}

// ends reports whether to end the search at a sample with a risk. Without a lull the first
// half of the search shows which risks are usual. A moment in the second
// half is good enough if fewer than one better moment is to be expected in the time left.
// Requests that only come to their end, while no other comes, have all the time.
func (s *search) ends(now time.Time, risk int) bool {
	s.rose = s.rose || risk > s.last && s.last > 0
	s.last = risk
	better := 0
	risk = min(risk, len(s.risks)-1)
	for _, samples := range s.risks[:risk] {
		better += samples
	}
	s.risks[risk]++
	past := now.Sub(s.began)
	left := s.until.Sub(now)
	return risk == 0 || s.rose && past >= left && time.Duration(better)*left < past
}
