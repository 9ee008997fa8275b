package report

import (
	"fmt"
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

// probesLeftOut calls visit with each health probe that did not count.
func (s *Stop) probesLeftOut(visit func(p *traffic.Pattern)) {
	patterns := s.InHold.Traffic.Patterns
	for i := range patterns {
		if patterns[i].LeftOut {
			visit(&patterns[i])
		}
	}
}

// probesCounted returns how many health probes did not count, and their requests.
func (s *Stop) probesCounted() (probes, requests int) {
	s.probesLeftOut(func(p *traffic.Pattern) {
		probes++
		requests += p.Count
	})
	return probes, requests
}

// leftOut returns the traffic that did not count, in words, or "". New connections
// without a byte stand with the new connections. For drained, open connections of all kinds
// count, and for settled no open connection does.
func (s *Stop) leftOut() string {
	if !s.adaptive() {
		return ""
	}
	var kinds []string
	if probes := s.probes(); probes != "" {
		kinds = append(kinds, probes)
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

// probes returns the health probes that did not count, in words, or "". Only one probe is
// named: the probe that prolonged the hold until recognized, else the most frequent.
func (s *Stop) probes() string {
	var named *traffic.Pattern
	held := false
	s.probesLeftOut(func(p *traffic.Pattern) {
		cause := s.prolongedBy(p)
		if named == nil || cause && !held {
			named, held = p, cause
		}
	})
	if named == nil {
		return ""
	}
	probes, _ := s.probesCounted()
	text := fmt.Sprintf("a probe of %v every %s", named.Peer, seconds(named.Period))
	if held {
		text += " (held until recognized)"
	}
	return text + andMore(probes-1)
}

// prolongedBy reports whether a health probe prolonged the hold before the probe was left
// out.
func (s *Stop) prolongedBy(p *traffic.Pattern) bool {
	cause := s.InHold.Traffic.Cause
	return isProbe(&cause, p) && s.prolonged().ordinary
}

// minFlood is how many half-open connections at a time may be a flood.
const minFlood = 100

// isFlood reports whether so many half-open connections at a time are a flood. A handshake
// takes less than a second, so a busy server has fewer than it accepts in a second.
func (s *Stop) isFlood(halfOpen int) bool {
	for _, n := range s.InHold.Traffic.PerSecond {
		if n >= halfOpen {
			return false
		}
	}
	return halfOpen >= minFlood
}
