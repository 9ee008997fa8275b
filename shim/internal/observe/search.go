package observe

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// While the loop searches for a lull, samples are searchInterval apart, or three times as
// long as a sample takes. A sample of more than manySearched sockets that takes longer than
// maxSearchSample is of no use; with fewer, the machine is busy.
const (
	searchInterval  = time.Millisecond
	maxSearchSample = 10 * time.Millisecond
	manySearched    = 1000
)

// search is the part of the sampler in the loop's search for a lull.
type search struct {
	underWay  atomic.Bool
	continued chan struct{}    // the loop has handled a snapshot; has room for one
	durations [8]time.Duration // of the latest samples
	samples   int
}

func newSearch() search { return search{continued: make(chan struct{}, 1)} }

// add notes how long a sample took.
func (s *search) add(took time.Duration) {
	s.durations[s.samples%len(s.durations)] = took
	s.samples++
}

// quickest returns how long the quickest of the latest samples took. On a busy machine most
// samples take longer than necessary.
func (s *search) quickest() time.Duration {
	if s.samples == 0 {
		return 0
	}
	return slices.Min(s.durations[:min(s.samples, len(s.durations))])
}

// forget makes continued wait for the next snapshot.
func (s *search) forget() {
	select {
	case <-s.continued:
	default:
	}
}

// Continue tells the Sampler that a snapshot has been handled, and whether a search for a
// lull is under way. The loop calls Continue after each snapshot.
func (s *Sampler) Continue(searching bool) {
	s.search.underWay.Store(searching)
	select {
	case s.search.continued <- struct{}{}:
	default:
	}
}

// take takes the sample of the next snapshot: during a search a glance, if possible. A full
// sample that shows a lull is too old for the signal to follow, and a glance does not show
// the connections that came since: both together confirm the lull.
func (s *Sampler) take(now time.Time) {
	if s.search.underWay.Load() {
		if s.glance() && s.snapshot.Requests.AtRisk > 0 {
			return
		}
		now = time.Now()
	}
	s.set(now, s.sample(now))
	s.search.add(time.Since(now))
	if s.mayMatter() && s.snapshot.Requests.AtRisk == 0 {
		s.glance()
	}
}

// glance takes a glance in place of a full sample, if a glance is possible. The result is
// false without a complete glance.
func (s *Sampler) glance() bool {
	now := time.Now()
	if !s.observer.mayGlance(now, s.tracker) || !s.observer.glance(now, s.tracker) {
		return false
	}
	s.set(now, s.judge(now, nil))
	return true
}

// set sets the next snapshot to the result of a sample that began at now.
func (s *Sampler) set(now time.Time, state stop.TrafficState) {
	s.snapshot.Began = now
	s.snapshot.State = state
	s.snapshot.Requests = s.requests()
}

// requests returns what the latest sample means for the search for a lull. An incomplete
// sample shows nothing new.
func (s *Sampler) requests() stop.Requests {
	v := s.tracker.Verdict()
	switch {
	case s.observer.source.name != SockDiag || len(s.observer.scope.Ports) == 0:
		return stop.Requests{Stale: true}
	case v.Incomplete:
		latest := s.snapshot.Requests
		latest.Stale = true
		return latest
	}
	return stop.Requests{
		Active:  v.Active,
		AtRisk:  v.AtRisk,
		Unclear: v.Unclear,
		TooMany: s.observer.sockets > manySearched && s.search.quickest() > maxSearchSample,
	}
}

// mayMatter reports whether the latest sample may end the hold amid requests, or begin a
// search for a lull.
func (s *Sampler) mayMatter() bool {
	next := &s.snapshot
	mayEnd := next.Began.Sub(s.cfg.Start) >= s.cfg.LullStart || next.State == stop.OnlyKept || next.State == stop.ConditionMet
	return s.cfg.LullStart > 0 && next.Requests.Active && mayEnd && !s.slowed.Load()
}

// awaitLoop waits until the loop has handled the latest snapshot. The loop's thread gets
// the only processor of Go's scheduler at once; a system call in this thread would keep the
// processor for milliseconds.
func (s *Sampler) awaitLoop() { <-s.search.continued }
