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
		return "systemd signals every process of a unit without KillMode=mixed: set it, so that the command goes on serving"
	case s.OtherProgram != "" && (s.ExitedAt.IsZero() || s.Exit.Signal != 0):
		return InWords("the command is %s: is --preset=%s (LAMEDUCK_PRESET) meant for it?", s.OtherProgram, s.Server)
	case !s.InHold.sees():
		return ""
	case s.Ended == stop.NoProgress:
		return "the server hangs: clients wait, and nothing is accepted, read or sent"
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
		return "--until=drained (LAMEDUCK_UNTIL) waits for the end of streams"
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
		return InWords(closesKept, s.Server)
	case toTheEnd:
		return InWords("traffic came until the end: %s is too short, see --until=quiet (LAMEDUCK_UNTIL)", s.Gate.Floor)
	case last.After(s.TriggeredAt) && enough < s.Gate.Floor && inFlight == 0:
		return InWords("last %s, probes aside, at +%s: a fixed delay needs %s", what, s.when(last), enough)
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
	isKept := s.InHold.Asked.CameBack+s.InHold.InUse > 0 // which a probe does not
	overLoopback := cause.Kind == traffic.NewConnections && cause.Peer.IsLoopback() && seldom && !isKept
	kept := cause.Kind == traffic.Bytes && s.InHold.InUse > 0 && s.Gate.Until == stop.Quiet && settled
	switch {
	case cause.Unanswered:
		return InWords("--ignore-port=%d (LAMEDUCK_IGNORE_PORT) or --until=settled (LAMEDUCK_UNTIL), "+
			"if such a stream needs no drain", cause.Port)
	case cause.Kind == traffic.Probe && s.TrafficConfig.Probes != traffic.IgnoreProbes:
		return "--ignore-probes (LAMEDUCK_IGNORE_PROBES) leaves health probes out sooner"
	case overLoopback:
		return "a probe over loopback? if nothing else comes that way, --ignore-peer=127.0.0.1 " +
			"--ignore-peer=::1 (LAMEDUCK_IGNORE_PEER) leaves it out"
	case kept && (s.TrafficConfig.CloseIdle || len(s.TrafficConfig.Goaway) > 0):
		return "clients keep their connections: a longer hold does not help" + unlessLate
	case kept && s.Server == "":
		return "--until=settled (LAMEDUCK_UNTIL) is enough if the server closes kept connections, " +
			"else --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	case kept && s.ClosesKept:
		return InWords(closesKept, s.Server)
	case kept:
		return "clients keep their connections: --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	case cause.Kind == traffic.NewConnections && s.Ended == stop.Ceiling && steady:
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, " +
			"or a balancer that never removed this pod"
	case s.Ended != stop.Ceiling || s.inFlight() == 0:
		return ""
	}
	return s.moreTime("requests")
}

// moreTime returns what lets a hold last longer than its ceiling.
func (s *Stop) moreTime(who string) string {
	if s.LongerGrace > s.Grace {
		return InWords("%s need more time: a grace period of at least %s, in --grace-period (LAMEDUCK_GRACE_PERIOD) too",
			who, s.LongerGrace)
	}
	return InWords("%s need more time: a longer --max-delay (LAMEDUCK_MAX_DELAY)", who)
}
