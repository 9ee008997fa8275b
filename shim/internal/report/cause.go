package report

import (
	"cmp"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// prolonged returns what kept the hold up beyond its floor, in words, and the traffic if it
// was traffic. A --wait-gone path or --on-stop comes before traffic that had been silent for
// long enough.
func (s *Stop) prolonged() (words string, by traffic.Cause) {
	floor, held := s.Gate.Floor, s.after(s.endedAt())
	if held <= floor || s.Ended == stop.NoProgress {
		return "", by
	}
	c := &s.InHold.Cause
	required := floor // for the traffic
	if s.Gate.Adaptive() {
		required = max(floor, max(s.after(c.At), 0)+s.TrafficConfig.QuietFor)
	}
	otherLasted := held >= required+time.Second // samples are up to a second apart
	onStopLasted := s.endedAt().Sub(s.OnStopUntil).Abs() < time.Second
	switch {
	case len(s.InHold.PathsPresent) > 0:
		words = say(byPath, pathWord(s.InHold.PathsPresent[0]))
	case otherLasted && onStopLasted:
		words = say(byOnStop, s.when(s.OnStopUntil))
	case otherLasted && len(s.WaitGone) == 1:
		words = say(byPath, pathWord(s.WaitGone[0]))
	case otherLasted && len(s.WaitGone) > 1:
		words = say(byOnePath, pathWord(s.WaitGone[0]), pathWord(s.WaitGone[1]))
	case c.Kind == traffic.Probe && s.TrafficConfig.Probes == traffic.IgnoreProbes: // until it was recognized
	case required > floor && c.Kind != traffic.NoCause && s.InHold.sees():
		sentence := byTraffic[c.Kind]
		if c.Unanswered {
			sentence = byUnanswered
		}
		return say(sentence, s.when(c.At), origin(c), c.Received, seconds(c.Period)), *c
	}
	return words, by
}

// endedAt returns the time at which the hold ended, or now.
func (s *Stop) endedAt() time.Time { return cmp.Or(s.EndedAt, s.Now) }

// origin returns the peer and the local port of a cause in words, as far as they are known.
func origin(c *traffic.Cause) string {
	from := fromUnknown
	if c.Peer.IsValid() {
		from = say(fromPeer, c.Peer)
	}
	if c.Port > 0 {
		return say(onPort, from, c.Port)
	}
	return from
}

// pathWord returns a path for printing, cut if it is very long.
func pathWord(path string) string { return quote.Word(quote.Cut(path, 120)) }
