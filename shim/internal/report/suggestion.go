package report

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// suggestion returns what would be better, if the data supports a suggestion, or "": the first that
// applies. TestAdvice in package e2e/hold follows each, and counts what that saves.
func (s *Stop) suggestion() string {
	o, served := &s.InHold, s.Latest.ServedAt
	// The command has closed its ports, and has no connection.
	stays := s.Latest.NoSockets && s.ExitedAt.IsZero() && len(s.Sent) > 0 && !served.IsZero() &&
		s.Now.Sub(served) >= 5*time.Second
	switch {
	case s.Deaf != "" && len(s.Sent) == 0:
		below := ""
		if len(s.Steps) == 0 {
			below = "; --preset=auto (LAMEDUCK_PRESET) tells the server below it"
		}
		return InWords("PID 1 (%s) ignores TERM: the stop ends by KILL, %s from now%s",
			s.Deaf, s.Stop.Grace-s.after(s.Now).Round(time.Second), below)
	case s.ranOut():
		return workersNeedTime
	case len(s.Untold) > 0:
		return InWords("nobody has told %s to end: --group (LAMEDUCK_GROUP) tells them, too", Workers(s.Untold))
	case s.signaledByOthers():
		return InWords("the command got %v from somebody else, so there was no hold "+
			"(Heroku signals every process, and so does systemd without KillMode=mixed)", s.Trigger)
	case s.OtherProgram != "" && (s.ExitedAt.IsZero() || s.Exit.Signal != 0):
		return InWords("the command is %s: is --preset=%s (LAMEDUCK_PRESET) meant for it?", s.OtherProgram, s.Server.Name)
	case !o.sees() || s.Ended == stop.NoProgress:
	case stays:
		enough := served.Sub(s.Sent[0].At).Truncate(time.Second) + 5*time.Second
		return InWords("it has listened nowhere and had no connection since +%s: --kill-after=%.0f (LAMEDUCK_KILL_AFTER) ends it",
			s.when(served), enough.Seconds())
	case s.Ended == stop.Ceiling && o.Streams > 0 && o.Longest >= s.held()-time.Second:
		return "streams went on in all of the hold: if they do not end, " + letServerClose
	case slices.Contains(early, s.Ended) && (s.cutStreams() > 0 || s.Hook && o.Streams > 0):
		return "--until=drained (LAMEDUCK_UNTIL) waits for the end of streams"
	case s.Server.Caveat != "" && s.inFlight() > 0 && len(s.Sent) > 0:
		return s.Server.Caveat
	case s.Ended == stop.Elapsed && !s.Stop.Gate.Conditional():
		return s.betterDelay()
	default:
		return s.betterHold()
	}
	return ""
}

// settled reports whether nothing new has come for as long as a hold requires, probes aside.
func (s *Stop) settled() bool {
	return s.after(s.InHold.LastOther) <= s.held()-s.Traffic.QuietFor
}

// betterHold returns what makes a hold shorter that traffic has prolonged, or what would have spared
// what was open at its end.
func (s *Stop) betterHold() string {
	o := &s.InHold
	_, cause := s.prolonged()
	held, atCeiling := s.held(), s.Ended == stop.Ceiling
	isNew := cause.Kind == traffic.NewConnections
	rate := float64(cause.Connections) / s.Traffic.QuietFor.Seconds() // in the end
	// Connections came as those of an exec probe or a HEALTHCHECK do: once a second at most, in all of the
	// hold, and none that is kept.
	seldom := float64(o.Accepted) <= max(s.after(o.LastNew).Seconds(), 1)+1 && o.InUse+o.Asked.CameBack == 0
	kept := cause.Kind == traffic.Bytes && o.InUse > o.Streams && s.Stop.Gate.Until == stop.Quiet && s.settled() &&
		!s.Letgo.CloseIdle && len(s.Letgo.Goaway) == 0
	switch {
	case cause.Unanswered:
		return InWords("--ignore-port=%d (LAMEDUCK_IGNORE_PORT) or --until=settled (LAMEDUCK_UNTIL), "+
			"if such a stream needs no drain", cause.Port)
	case cause.Kind == traffic.Probe && s.Traffic.Probes != traffic.IgnoreProbes:
		return "--ignore-probes (LAMEDUCK_IGNORE_PROBES) leaves health probes out sooner"
	case isNew && cause.Peer.IsLoopback() && seldom && rate <= 1:
		return "a probe over loopback? if nothing else comes that way, --ignore-peer=127.0.0.1 " +
			"--ignore-peer=::1 (LAMEDUCK_IGNORE_PEER) leaves it out"
	case kept && s.Server.ClosesKept:
		return InWords(closesKept, s.Server.Name)
	case kept && s.Server.Name == "":
		return "--until=settled (LAMEDUCK_UNTIL) is enough if the server closes kept connections, " +
			"else --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	case kept:
		return "clients keep their connections: --close-idle (LAMEDUCK_CLOSE_IDLE) closes them" + unlessLate
	case isNew && atCeiling && rate >= max(1, float64(o.Accepted)/held.Seconds()/2): // as before
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, " +
			"or a balancer that never removed this pod"
	case atCeiling && s.inFlight()+o.Streams > 0:
		needed := held + max(o.Longest, s.Traffic.QuietFor)
		if grace := s.GraceFor(needed); grace > s.Stop.Grace {
			return InWords("requests need more time: a grace period of at least %s, in --grace-period "+
				"(LAMEDUCK_GRACE_PERIOD) too", grace)
		}
		return InWords("requests need more time: --max-delay=%.0f (LAMEDUCK_MAX_DELAY)", needed.Seconds()+1)
	case o.Open >= 20 && o.InUse == 0 && s.Exit.Signal != 0 && !s.Stop.Gate.OnStop:
		return InWords("%d connections ended in one instant: if they are WebSockets, "+letServerClose, o.Open)
	}
	return ""
}

// early are the ends of holds that do not wait for all streams, and could.
var early = []stop.Reason{stop.Elapsed, stop.Settled, stop.Quiet, stop.Kept}

// signaledByOthers reports whether the command closed its ports right after the trigger, or ended as if
// asked to, although lameduck had sent nothing. A server does not exit 0 by itself; what has no port may.
func (s *Stop) signaledByOthers() bool {
	sees, listened := s.InHold.sees() && !s.InHold.Incomplete, s.InHold.ListenedAt
	closed := sees && !listened.IsZero() && s.after(listened) < time.Second && s.held() > 2*time.Second
	asTold := s.Exit.Signal == s.Trigger || s.ExitStatus() == 0 && sees
	ended := s.Ended == stop.ChildExit && (asTold || s.held() < time.Second/2)
	tells := s.Told != 0 || s.Stop.Gate.OnStop || s.Stop.Gate.WaitGone
	return (closed || ended) && s.Trigger != 0 && !tells
}

// betterDelay returns what is better than a plain delay that was too short or too long.
func (s *Stop) betterDelay() string {
	last, what := s.InHold.LastOther, "new connection" // probes aside
	if use := s.InHold.LastUse; use.Sub(last) >= time.Second {
		last, what = use, "traffic"
	}
	enough := s.after(last).Truncate(time.Second) + 2*time.Second
	switch toTheEnd := s.inFlight() > 0 || s.EndedAt.Sub(last) < time.Second; {
	case toTheEnd && s.Server.ClosesKept && s.settled():
		return InWords(closesKept, s.Server.Name)
	case toTheEnd:
		return InWords("traffic came until the end: %s is too short, see --until=quiet (LAMEDUCK_UNTIL)", s.Stop.Gate.Floor)
	case last.After(s.TriggeredAt) && enough < s.Stop.Gate.Floor:
		return InWords("last %s, probes aside, at +%s: a fixed delay needs %s", what, s.when(last), enough)
	}
	return ""
}
