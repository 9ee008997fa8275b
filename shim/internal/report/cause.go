package report

import (
	"cmp"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// byTraffic has the causes in words. The arguments are when a cause ended, the peer and port,
// and a probe's bytes and period.
var byTraffic = map[traffic.CauseKind]string{
	traffic.NewConnections:  "new connections until +%[1]s, the last %[2]s",
	traffic.Bytes:           "bytes until +%[1]s, the last %[2]s",
	traffic.Requests:        "requests in flight until +%[1]s, the oldest %[2]s",
	traffic.AcceptQueue:     "connections waiting to be accepted until +%[1]s, one %[2]s",
	traffic.OpenConnections: "open connections until +%[1]s, one %[2]s",
	traffic.Probe:           "what looks like a health probe, %[3]d bytes %[2]s every %[4]s, until +%[1]s",
}

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
		words = pathWord(s.InHold.PathsPresent[0]) + ", which existed until the end"
	case otherLasted && onStopLasted:
		words = "--on-stop, which ran until +" + s.when(s.OnStopUntil)
	case otherLasted && len(s.WaitGone) == 1:
		words = pathWord(s.WaitGone[0]) + ", which existed until the end"
	case otherLasted && len(s.WaitGone) > 1:
		words = say("one of %s and %s, which existed until the end", pathWord(s.WaitGone[0]), pathWord(s.WaitGone[1]))
	case required > floor && c.Kind != traffic.NoCause && s.InHold.sees():
		sentence := byTraffic[c.Kind]
		if c.Unanswered {
			sentence = "bytes %[2]s, never answered, until +%[1]s"
		}
		return say(sentence, s.when(c.At), origin(c), c.Received, seconds(c.Period)), *c
	}
	return words, by
}

// endedAt returns the time at which the hold ended, or now.
func (s *Stop) endedAt() time.Time { return cmp.Or(s.EndedAt, s.Now) }

// origin returns the peer and the local port of a cause in words, as far as they are known.
func origin(c *traffic.Cause) string {
	from := "from an unknown peer"
	if c.Peer.IsValid() {
		from = say("from %v", c.Peer)
	}
	if c.Port > 0 {
		from += say(" on port %d", c.Port)
	}
	return from
}

// pathWord returns a path for printing, cut if it is very long.
func pathWord(path string) string { return quote.Word(quote.Cut(path, 120)) }
