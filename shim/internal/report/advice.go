package report

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// end returns the time at which the hold ended, or now.
func (s *Stop) end() time.Time {
	if s.Ended == "" {
		return s.Now
	}
	return s.EndedAt
}

// recent reports whether the time from at to the end of the hold is shorter than the
// silence that the condition asks for.
func (s *Stop) recent(at time.Time) bool { return s.end().Sub(at) < s.TrafficConfig.QuietFor }

// advice is a suggestion. The text says enough without more.
type advice struct{ text, more string }

// suggestion returns a better configuration, if the data supports one.
func (s *Stop) suggestion() advice {
	switch {
	case s.ShellDropped != 0:
		return advice{text: fmt.Sprintf(s.spell("a shell that does not pass %v on: exec, or --group"), s.ShellDropped)}
	case !s.InHold.sees() || s.Ended == "":
		return advice{}
	case s.Ended == stop.Elapsed && s.delayed():
		return s.betterDelay()
	case s.Ended == stop.NoProgress:
		return advice{"the command hangs", ": clients wait, and nothing is accepted, read or sent"}
	case s.keptInUse():
		return s.closeKept()
	case s.newToCeiling() && s.steadyRate():
		return advice{"new connections kept their rate to the ceiling", ": a liveness restart, the last endpoint, or a balancer that never removed us"}
	}
	return advice{}
}

// delayed reports whether the hold is a plain delay.
func (s *Stop) delayed() bool {
	gate := &s.StopConfig.Gate
	return !s.adaptive() && !gate.WaitGone && !gate.OnStop
}

// betterDelay returns the delay that would have been enough for a plain delay, if the delay
// was not right.
func (s *Stop) betterDelay() advice {
	last := s.lastOther()
	floor := s.StopConfig.Gate.Floor
	inFlight, _ := s.inFlight()
	enough := (s.after(last) + 2*time.Second - 1).Truncate(time.Second)
	came := last.After(s.TriggeredAt)
	switch {
	case came && s.end().Sub(last) < time.Second:
		return advice{fmt.Sprintf("new connections came to the end: %s is too short", stop.FormatDuration(floor)), s.spell("; see --until=quiet")}
	case s.usedToEnd() && inFlight > 0:
		return s.insteadOfDelay()
	case came && enough < floor && inFlight == 0:
		except := ""
		if last.Before(s.InHold.Traffic.LastNew) {
			except = " but for probes"
		}
		return advice{text: fmt.Sprintf("last new connection%s at +%s: a fixed delay needs %s", except, seconds(s.after(last)), stop.FormatDuration(enough))}
	}
	return advice{}
}

// lastOther returns when the last new connection came that counts and is no probe's, the
// zero time without.
func (s *Stop) lastOther() time.Time {
	if last := s.InHold.Traffic.LastOther; last.Before(s.lastNew()) {
		return last
	}
	return s.lastNew()
}

// usedToEnd reports whether, in a plain delay, bytes moved on kept connections until the
// end.
func (s *Stop) usedToEnd() bool {
	t := &s.InHold.Traffic
	return t.Kept.Connections > 0 && s.end().Sub(t.LastByte) < time.Second
}

// insteadOfDelay returns what is better than a plain delay that ended while requests were
// in flight on kept connections, unless a server that closes such connections needed the
// delay.
func (s *Stop) insteadOfDelay() advice {
	kept := &s.InHold.Traffic.Kept
	settled := s.silenceAfter(s.lastOther())
	switch {
	case !s.ClosesKept:
		return advice{fmt.Sprintf("traffic came to the end on %s of %s",
			counted(kept.Connections, "connection"), counted(kept.Peers, "peer")), s.spell(": see --until=quiet")}
	case s.noticeable(s.after(s.end()) - settled):
		return s.closeKept()
	}
	return advice{}
}

// keptInUse reports whether connections that clients keep, rather than a floor, held until
// the hold ended.
func (s *Stop) keptInUse() bool {
	t := &s.InHold.Traffic
	gate := &s.StopConfig.Gate
	held := s.Ended == stop.Kept || s.Ended == stop.Ceiling && s.recent(t.LastByte) && s.waitedForOthers() == "" && s.noneCame()
	beyondFloor := s.noticeable(s.after(s.end()) - gate.Floor)
	return held && beyondFloor && gate.Until == stop.Quiet && t.Cause.Kind == traffic.Bytes && t.Kept.Connections > 0
}

// noneCame reports whether new connections, probes aside, had ceased long before the end of
// the hold.
func (s *Stop) noneCame() bool {
	last := s.lastOther()
	if last.Before(s.TriggeredAt) {
		last = s.TriggeredAt
	}
	held := s.after(s.end())
	return s.end().Sub(last) >= min(traffic.KeptFor*s.TrafficConfig.QuietFor, held/2)
}

// closeKept returns a shorter hold for a server that closes kept connections at its signal.
// About a known server that does not close kept connections, the end [stop.Kept] shows
// that a longer hold does not help.
func (s *Stop) closeKept() advice {
	switch {
	case s.ClosesKept && s.Server != "":
		return advice{text: fmt.Sprintf(s.spell("%s closes kept connections: --until=settled is enough"), s.Server)}
	case s.Server == "":
		return advice{text: s.spell("--until=settled is enough if the server closes kept connections")}
	case s.Ended == stop.Kept:
		return advice{text: "clients keep their connections: a longer hold does not help"}
	}
	return advice{}
}

// newToCeiling reports whether new connections kept the hold up to the ceiling.
func (s *Stop) newToCeiling() bool {
	isCause := s.InHold.Traffic.Cause.Kind == traffic.NewConnections
	return isCause && s.Ended == stop.Ceiling && len(s.InHold.PathsPresent) == 0 && s.recent(s.lastNew())
}

// steadyRate reports whether the last third of the hold brought at least half as many
// connections as the first third, which brought at least one each second. Most connections
// must count: the numbers of each second include all.
func (s *Stop) steadyRate() bool {
	_, probes := s.probesCounted()
	if 2*(s.bare()+probes) > s.InHold.Traffic.Accepted {
		return false
	}
	perSecond := s.InHold.Traffic.PerSecond
	third := len(perSecond) / 3
	first := sum(perSecond[:third])
	last := sum(perSecond[len(perSecond)-third:])
	return third > 0 && first >= third && 2*last >= first
}

func sum(numbers []int) (total int) {
	for _, n := range numbers {
		total += n
	}
	return total
}
