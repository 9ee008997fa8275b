package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// prolongedBy returns the causes that kept the hold up beyond its floor, or "".
func (s *Stop) prolongedBy() string {
	if !s.adaptive() || s.after(s.end()) <= s.StopConfig.Gate.Floor {
		return ""
	}
	var causes []string
	if cause := s.lastedToCeiling(); cause != "" {
		causes = append(causes, cause)
	}
	if s.patternsHeld() {
		p := s.InHold.Traffic.Patterns[0]
		causes = append(causes, fmt.Sprintf(s.spell("%d bytes from %v every %s: a probe? see --ignore-probes"), p.Received, p.Peer, seconds(p.Period)))
	}
	return strings.Join(causes, ", and ")
}

// patternsHeld reports whether traffic that looks like probes counted as traffic.
func (s *Stop) patternsHeld() bool {
	return len(s.InHold.Traffic.Patterns) > 0 && s.TrafficConfig.Probes != traffic.IgnoreProbes
}

// lastedToCeiling returns what the condition waited for in vain until the ceiling, probes
// aside, or "".
func (s *Stop) lastedToCeiling() string {
	if s.Ended != stop.Ceiling {
		return ""
	}
	t := &s.InHold.Traffic
	until := s.StopConfig.Gate.Until
	latest := ""
	if t.Cause.Peer.IsValid() {
		latest = fmt.Sprintf(", the latest peer %v", t.Cause.Peer)
	}
	lastNew := t.LastNew
	lastByte := t.LastByte
	if s.patternsHeld() {
		lastNew = t.LastOther
		lastByte = time.Time{} // the last byte may have been a probe's
	}
	switch {
	case len(s.InHold.PathsPresent) > 0:
		return quote.Word(fmt.Sprintf("%.200s", s.InHold.PathsPresent[0])) + " was there to the end"
	case s.recent(lastNew):
		return "new connections to the end" + latest
	case until == stop.Settled:
		return ""
	case t.InFlight > 0:
		return fmt.Sprintf("%d in flight to the end", t.InFlight)
	case s.recent(lastByte):
		return "bytes moved to the end" + latest
	case until == stop.Drained && t.Open > 0:
		return fmt.Sprintf("%d open to the end", t.Open)
	}
	return ""
}

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

// suggestion returns a better configuration, if the data supports one, or "".
func (s *Stop) suggestion() string {
	switch {
	case s.ShellDropped != 0:
		return fmt.Sprintf(s.spell("the command is a shell that does not pass %v on: exec, or --group"), s.ShellDropped)
	case !s.InHold.sees() || s.Ended == "":
		return ""
	case s.Ended == stop.Elapsed:
		return s.betterDelay()
	case s.Ended == stop.NoProgress:
		return "connections wait to be accepted and nothing moves: the command hangs"
	case s.Ended == stop.Ceiling && s.recent(s.InHold.Traffic.LastOther) && s.steadyRate():
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, or a balancer that never removed us"
	}
	return ""
}

// betterDelay returns the delay that would have been enough for a hold that was only a
// delay, or "" if the delay was right.
func (s *Stop) betterDelay() string {
	last := s.InHold.Traffic.LastOther
	floor := s.StopConfig.Gate.Floor
	if !last.After(s.TriggeredAt) {
		return ""
	}
	enough := (s.after(last) + 2*time.Second - 1).Truncate(time.Second)
	switch {
	case s.end().Sub(last) < time.Second:
		return fmt.Sprintf(s.spell("new connections came to the end: %s is too short; see --until=quiet"), stop.FormatDuration(floor))
	case enough < floor:
		except := ""
		if last.Before(s.InHold.Traffic.LastNew) {
			except = " but for probes"
		}
		return fmt.Sprintf("last new connection%s at +%s: a fixed delay needs %s", except, seconds(s.after(last)), stop.FormatDuration(enough))
	}
	return ""
}

// steadyRate reports whether the last third of the hold brought at least half as many
// connections as the first third, which brought at least one each second.
func (s *Stop) steadyRate() bool {
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
