package report

import "github.com/lameduck-init/lameduck/shim/internal/stop"

// lullSought reports whether the first signal was to be sent at a lull, and no other event,
// such as a second signal, ended the hold.
func (s *Stop) lullSought() bool {
	switch s.Ended {
	case stop.Ceiling, stop.Kept, stop.Elapsed, stop.Settled:
		return (s.Lull.TooMany || !s.Lull.Sought.IsZero()) && s.InHold.sees() && !s.InHold.InFlightUnknown
	}
	return false
}

// lull returns how the search for a lull ended, in words, or "" without a search. The
// number of requests in flight stands beside the number of open connections.
func (s *Stop) lull() string {
	inFlight, _ := s.inFlight()
	switch {
	case !s.lullSought():
		return ""
	case s.Lull.TooMany:
		return "(too many connections for a lull)"
	case s.Lull.Found:
		return "at a lull"
	case inFlight > 0:
		return "after " + seconds(s.end().Sub(s.Lull.Sought)) + " without a lull"
	}
	return ""
}

// lullFound reports whether the first signal was sent at a lull; nil: no lull was sought.
func (s *Stop) lullFound() *bool {
	if !s.lullSought() {
		return nil
	}
	found := s.Lull.Found && !s.Lull.TooMany
	return &found
}
