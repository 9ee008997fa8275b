package report

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// suggestion returns what would be better, if the data supports a suggestion, or "".
func (s *Stop) suggestion() string {
	inFlight := s.inFlight()
	settled := s.endedAt().Sub(s.InHold.LastOther) >= s.TrafficConfig.QuietFor
	switch {
	case s.ranOut():
		return workersNeedTime
	case s.Systemd && s.Ended == stop.ChildExit && s.after(s.EndedAt) < time.Second:
		return killMode
	case s.OtherProgram != "" && (s.ExitedAt.IsZero() || s.Exit.Signal != 0):
		return say(otherProgram, s.OtherProgram, s.Server)
	case !s.InHold.sees():
		return ""
	case s.Ended == stop.NoProgress:
		return serverHangs
	case s.InHold.Streams > 0:
		return s.forStreams()
	case s.Caveat != "" && inFlight > 0 && len(s.Sent) > 0:
		return s.Caveat
	case s.Ended == stop.Elapsed && !s.Gate.Conditional():
		return s.betterDelay(inFlight, settled)
	}
	return s.betterHold(settled)
}

// forStreams returns what streams need that the end of the hold has cut.
func (s *Stop) forStreams() string {
	switch s.Ended {
	case stop.Ceiling:
		return s.moreTime("streams")
	case stop.Elapsed, stop.Settled, stop.Quiet, stop.Kept:
		return waitForStreams
	}
	return ""
}

// betterDelay returns what is better than a plain delay that was too short or too long.
func (s *Stop) betterDelay(inFlight int, settled bool) string {
	last, what := s.InHold.LastOther, "new connection" // probes aside
	if use := s.InHold.LastUse; use.Sub(last) >= time.Second {
		last, what = use, "traffic"
	}
	enough := s.after(last).Truncate(time.Second) + 2*time.Second
	cutKept := inFlight > 0 && s.InHold.InUse > 0
	switch toTheEnd := cutKept || s.EndedAt.Sub(last) < time.Second; {
	case toTheEnd && s.ClosesKept && settled:
		return say(closesKept, s.Server)
	case toTheEnd:
		return say(delayTooShort, s.Gate.Floor)
	case last.After(s.TriggeredAt) && enough < s.Gate.Floor && inFlight == 0:
		return say(delayTooLong, what, s.when(last), enough)
	}
	return ""
}

// betterHold returns what makes a hold shorter that traffic has prolonged, or what would have
// spared requests in flight at the ceiling.
func (s *Stop) betterHold(settled bool) string {
	_, cause := s.prolonged()
	rate := float64(cause.Connections) / s.TrafficConfig.QuietFor.Seconds()
	average := float64(s.InHold.Accepted) / s.after(s.endedAt()).Seconds()
	steady := rate >= max(1, average/2) // in the end, of those that count
	// An exec probe or a HEALTHCHECK comes once a second at most, in all of the hold.
	untilLast := max(s.after(s.InHold.LastNew).Seconds(), 1)
	seldom := rate <= 1 && float64(s.InHold.Accepted) <= untilLast+1
	overLoopback := cause.Kind == traffic.NewConnections && cause.Peer.IsLoopback() && seldom
	kept := cause.Kind == traffic.Bytes && s.InHold.InUse > 0 && s.Gate.Until == stop.Quiet && settled
	switch {
	case cause.Unanswered:
		return say(ignoreOneWay, cause.Port)
	case cause.Kind == traffic.Probe && s.TrafficConfig.Probes != traffic.IgnoreProbes:
		return ignoreProbes
	case overLoopback:
		return ignoreLoopback
	case kept && (s.TrafficConfig.CloseIdle || len(s.TrafficConfig.Goaway) > 0):
		return keepsOn
	case kept && s.Server == "":
		return mayCloseKept
	case kept && s.ClosesKept:
		return say(closesKept, s.Server)
	case kept:
		return keepsOpen
	case cause.Kind == traffic.NewConnections && s.Ended == stop.Ceiling && steady:
		return neverRemoved
	case s.Ended != stop.Ceiling || s.inFlight() == 0:
		return ""
	}
	return s.moreTime("requests")
}

// moreTime returns what lets a hold last longer than its ceiling.
func (s *Stop) moreTime(who string) string {
	if s.LongerGrace > s.Grace {
		return say(moreGrace, who, s.LongerGrace)
	}
	return say(longerMax, who)
}
