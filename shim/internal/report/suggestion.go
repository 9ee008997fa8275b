package report

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// suggestion returns what would be better, if the data supports a suggestion, or "".
func (s *Stop) suggestion() string {
	t := &s.InHold.Traffic
	gate := &s.StopConfig.Gate
	inFlight, _ := s.inFlight()
	_, cause := s.prolonged()
	settled := s.endedAt().Sub(t.LastOther) >= s.TrafficConfig.QuietFor
	switch {
	case s.ShellDropped != 0:
		return shellDrops.with(s.ShellDropped)
	case s.OtherProgram != "" && (s.ExitedAt.IsZero() || s.Exit.Signal != 0):
		return otherProgram.with(s.OtherProgram, s.Server)
	case !s.InHold.sees():
		return ""
	case s.Ended == stop.NoProgress:
		return serverHangs.with()
	case s.Caveat != "" && inFlight > 0 && len(s.Sent) > 0:
		return s.Caveat
	case s.Ended == stop.Elapsed && !s.adaptive() && !gate.WaitGone && !gate.OnStop:
		return s.betterDelay(inFlight)
	case cause.Unanswered:
		return ignoreOneWay.with(cause.Port)
	case cause.Kind == traffic.Probe && s.TrafficConfig.Probes != traffic.IgnoreProbes:
		return ignoreProbes.with()
	case cause.Kind == traffic.Bytes && t.InUse > 0 && gate.Until == stop.Quiet && settled:
		return s.closeKept()
	case cause.Kind == traffic.NewConnections && s.Ended == stop.Ceiling && !settled && s.steadyRate(&cause):
		return neverRemoved.with()
	}
	return ""
}

// betterDelay returns what is better than a plain delay that was too short or too long.
func (s *Stop) betterDelay(inFlight int) string {
	t := &s.InHold.Traffic
	floor := s.StopConfig.Gate.Floor
	last := t.LastOther // probes aside
	enough := (s.after(last) + 2*time.Second - 1).Truncate(time.Second)
	cutKept := inFlight > 0 && t.InUse > 0
	switch {
	case cutKept && s.ClosesKept && s.EndedAt.Sub(last) >= s.TrafficConfig.QuietFor:
		return s.closeKept()
	case cutKept, s.EndedAt.Sub(last) < time.Second:
		return delayTooShort.with(stop.FormatDuration(floor))
	case last.After(s.TriggeredAt) && enough < floor && inFlight == 0:
		return delayTooLong.with(s.when(last), stop.FormatDuration(enough))
	}
	return ""
}

// closeKept returns what helps if connections that clients keep using held until the hold
// ended.
func (s *Stop) closeKept() string {
	switch {
	case s.Server == "":
		return mayCloseKept.with()
	case s.ClosesKept:
		return closesKept.with(s.Server)
	}
	return keepsOn.with()
}

// steadyRate reports whether new connections, most of which count, came at half of their
// average rate or more to the end, and at least one a second.
func (s *Stop) steadyRate(cause *traffic.Cause) bool {
	t := &s.InHold.Traffic
	average := float64(t.Accepted) / s.after(s.EndedAt).Seconds()
	atEnd := float64(cause.Connections) / s.TrafficConfig.QuietFor.Seconds()
	return atEnd >= 1 && 2*atEnd >= average && 2*(t.LeftOut.Bare+s.probesLeftOut()) <= t.Accepted
}

// probesLeftOut returns the number of requests of health probes that did not count.
func (s *Stop) probesLeftOut() (n int) {
	for _, p := range s.InHold.Traffic.Patterns {
		if p.LeftOut {
			n += p.Count
		}
	}
	return n
}
