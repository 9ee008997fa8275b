package report

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// prolonged returns what kept the hold up beyond its floor, in words, and the traffic if it
// was traffic. A --wait-gone path or --on-stop comes before traffic that had been silent for
// long enough.
func (s *Stop) prolonged() (words string, by traffic.Cause) {
	end, floor := s.endedAt(), s.StopConfig.Gate.Floor
	c := s.InHold.Traffic.Cause
	traced := s.adaptive() && s.InHold.sees() && s.Ended != stop.NoProgress && !c.At.Before(s.TriggeredAt)
	required := floor
	switch {
	case traced:
		required = max(floor, s.after(c.At)+s.TrafficConfig.QuietFor)
	case s.adaptive():
		required = max(floor, s.TrafficConfig.QuietFor)
	}
	otherLasted := s.after(end) >= required+time.Second // samples are up to a second apart
	onStopLasted := end.Sub(s.OnStopUntil).Abs() < time.Second
	switch {
	case len(s.InHold.PathsPresent) > 0 && s.after(end) > floor:
		return byPath.with(pathWords(s.InHold.PathsPresent...)), by
	case otherLasted && onStopLasted:
		return byOnStop.with(s.when(s.OnStopUntil)), by
	case otherLasted && len(s.WaitGone) == 1:
		return byPath.with(pathWords(s.WaitGone...)), by
	case otherLasted && len(s.WaitGone) > 1:
		return byOnePath.with(pathWords(s.WaitGone...)), by
	case !traced || required <= floor || s.after(end) <= floor:
	case c.Unanswered:
		return byUnanswered.with(origin(&c), s.when(c.At)), c
	default:
		return byTraffic[c.Kind].with(s.when(c.At), origin(&c), c.Received, seconds(c.Period)), c
	}
	return "", by
}

// endedAt returns the time at which the hold ended, or now.
func (s *Stop) endedAt() time.Time {
	if s.Ended == "" {
		return s.Now
	}
	return s.EndedAt
}

// origin returns the peer and the local port of a cause in words, as far as they are known.
func origin(c *traffic.Cause) string {
	from := fromUnknown.with()
	if c.Peer.IsValid() {
		from = fromPeer.with(c.Peer)
	}
	if c.Port > 0 {
		return onPort.with(from, c.Port)
	}
	return from
}

// pathWords returns paths for printing: no more than two, and none of them whole if it is
// very long.
func pathWords(paths ...string) string {
	var words phrases
	for _, path := range paths[:min(len(paths), 2)] {
		words.add(true, asGiven, quote.Word(fmt.Sprintf("%.120s", path)))
	}
	return words.join(" and ")
}
