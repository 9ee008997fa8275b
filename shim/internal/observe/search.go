package observe

import (
	"sync/atomic"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// searchInterval is the time between two samples while the loop searches for a lull.
const searchInterval = time.Millisecond

// search is the part of the sampler in the loop's search for a lull.
type search struct {
	underWay  atomic.Bool
	continued chan struct{} // the loop has handled a snapshot; has room for one
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

// requests returns what the latest sample means for the search for a lull. An incomplete
// sample shows nothing new.
func (s *Sampler) requests() stop.Requests {
	v := s.tracker.Verdict()
	latest := s.snapshot.Requests
	switch {
	case s.observer.source.name != SockDiag || len(s.observer.scope.Ports) == 0:
		return stop.Requests{Stale: true}
	case v.Incomplete:
		latest.Stale = true
		return latest
	}
	return stop.Requests{Active: v.Active, AtRisk: v.AtRisk}
}

// mayMatter reports whether the latest sample may end the hold amid requests, or begin a
// search for a lull. The sampler then waits until the loop has handled the sample: the loop's
// thread gets the only processor of Go's scheduler at once, which a system call in the
// sampler's thread would keep for milliseconds.
func (s *Sampler) mayMatter() bool {
	next := &s.snapshot
	if s.cfg.LullStart == 0 || !next.Requests.Active || s.slowed.Load() {
		return false
	}
	isLate := next.Began.Sub(s.cfg.Start) >= s.cfg.LullStart
	return isLate || next.State == stop.OnlyKept || next.State == stop.ConditionMet
}
