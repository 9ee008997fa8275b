package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// bare returns how many of the new connections did not count because no byte came.
func (s *Stop) bare() int {
	t := &s.InHold.Traffic
	return min(t.LeftOut.Bare, t.Accepted)
}

// lastNew returns when the last new connection that counts came, the zero time without.
func (s *Stop) lastNew() time.Time {
	t := &s.InHold.Traffic
	if t.Accepted > 0 && s.bare() == t.Accepted {
		return time.Time{}
	}
	return t.LastNew
}

// probesLeftOut returns the health probes that did not count.
func (s *Stop) probesLeftOut() []traffic.Pattern {
	counts := func(p traffic.Pattern) bool { return !p.LeftOut }
	return slices.DeleteFunc(slices.Clone(s.InHold.Traffic.Patterns), counts)
}

// probesCounted returns how many requests of health probes did not count.
func (s *Stop) probesCounted() (n int) {
	for _, p := range s.probesLeftOut() {
		n += p.Count
	}
	return n
}

// leftOut returns the traffic that did not count, in words, or "". New connections
// without a byte stand with the new connections. For drained, open connections of all kinds
// count, and for settled no open connection does.
func (s *Stop) leftOut() string {
	if !s.adaptive() {
		return ""
	}
	var kinds []string
	if probes := s.probesLeftOut(); len(probes) > 0 {
		kinds = append(kinds, fmt.Sprintf("a probe of %v every %s", probes[0].Peer, seconds(probes[0].Period))+andMore(len(probes)-1))
	}
	left := &s.InHold.Traffic.LeftOut
	if s.StopConfig.Gate.Until == stop.Quiet {
		if left.OneWay > 0 {
			kinds = append(kinds, counted(left.OneWay, "one-way connection"))
		}
		if left.Gone > 0 {
			kinds = append(kinds, counted(left.Gone, "gone peer"))
		}
	}
	if s.isFlood(left.HalfOpen) {
		kinds = append(kinds, fmt.Sprintf("a flood of %d half-open connections", left.HalfOpen))
	}
	if len(kinds) == 0 {
		return ""
	}
	return "left out: " + strings.Join(kinds, ", ")
}

// minFlood is how many half-open connections at a time may be a flood.
const minFlood = 100

// isFlood reports whether so many half-open connections at a time are a flood. A handshake
// takes less than a second, so a busy server has fewer than it accepts in a second.
func (s *Stop) isFlood(halfOpen int) bool {
	return halfOpen >= minFlood && halfOpen > slices.Max(append([]int{0}, s.InHold.Traffic.PerSecond...))
}
