package cost

import "time"

// Stop is a stop that others carry out, as far as it has come.
type Stop struct {
	Result
	Now      time.Time     // up to when it is followed
	TERM     time.Time     // when TERM said that the stop has begun; zero: not at all, or not yet
	Limit    time.Duration // how long the stop is followed
	QuietFor time.Duration // for how long nobody is refused if the stop is over
	Ceiling  time.Duration // of a hold until quiet

	Accepted int // connections in the minute before the stop began
}

// Began returns when the stop began: at TERM, or at the first end of a port if that came first.
// The zero time means that it has not begun.
func (s *Stop) Began() time.Time {
	began := s.TERM
	for _, e := range s.Ends {
		if began.IsZero() || e.At.Before(began) {
			began = e.At
		}
	}
	return began
}

// FromTERM reports whether times count from TERM, and else from the server's end, before which the
// stop began unseen.
func (s *Stop) FromTERM() bool { return s.Began().Equal(s.TERM) }

// Ended returns when the last port that has ended did, zero if none has.
func (s *Stop) Ended() (at time.Time) {
	for _, e := range s.Ends {
		at = e.At
	}
	return at
}

// Over reports whether nothing more is to be seen: every port has ended, its connections are
// closed, and nobody has been refused for QuietFor; or the limit has passed. TERM after the first end
// says that everybody else has gone and only the watch is waited for: no longer than QuietFor.
func (s *Stop) Over() bool {
	began := s.Began()
	switch {
	case began.IsZero():
		return false
	case s.Now.Sub(began) >= s.Limit:
		return true
	case len(s.Listening)+s.Open > 0:
		return false
	}
	quiet := s.Now.Sub(s.Ended())
	if !s.TERM.After(began) {
		quiet = min(quiet, s.Now.Sub(s.LastRefused))
	}
	return quiet >= s.QuietFor
}

// Lost reports whether the stop has cost anything, once every port has ended, and the events of its
// connections have come.
func (s *Stop) Lost() bool {
	requests, streams := s.Cut()
	hasGone := len(s.Listening)+s.Open == 0 && s.Now.Sub(s.Ended()) >= LateEvent
	return hasGone && requests+streams+s.Refused > 0
}

// KeepsOn reports whether clients that keep their connections used them to the end, and nobody
// else came: they go on in any hold. A balancer that lets go late sends new connections afterwards.
// A stop that began unseen has to have cost something.
func (s *Stop) KeepsOn() bool {
	requests, _ := s.Cut()
	end := s.Ended()
	alone := end.Sub(s.Before.LastOther)
	switch {
	case s.FromTERM():
		alone = min(alone, end.Sub(s.TERM))
	case requests+s.Refused == 0:
		return false
	}
	toTheEnd := s.Before.InUse > 0 && end.Sub(s.Before.LastUse) < s.QuietFor/2 && s.LastRefused.Sub(end) < s.QuietFor/2
	return toTheEnd && alone >= s.QuietFor
}

// Needed returns what would have been enough: how long a hold until quiet would have lasted, and the shortest
// fixed delay in whole seconds, with a second to spare. The delay is 0 if nothing came after the stop began.
// Nothing is enough if a client KeepsOn, and it is not known before the server's end, nor of a stop that began
// unseen, and after which nobody came.
func (s *Stop) Needed() (hold, delay time.Duration, isKnown bool) {
	began := s.Began()
	lastUse := max(s.Before.LastOther.Sub(began), s.Before.LastUse.Sub(began), s.LastRefused.Sub(began))
	if lastUse >= 0 { // a client may be refused as the server ends
		delay = lastUse.Truncate(time.Second) + 2*time.Second
	}
	last := max(s.Before.LastByte.Sub(began), lastUse, 0)
	isKnown = len(s.Ends) > 0 && !s.KeepsOn() && (s.FromTERM() || s.Refused > 0)
	return min(last+s.QuietFor, s.Ceiling), delay, isKnown
}
