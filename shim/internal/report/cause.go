package report

import (
	"cmp"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// prolonged returns what kept the hold up beyond its floor, in words, and the traffic if it
// was traffic. --wait-gone, --wait-url and --on-stop come before traffic that had been silent for
// long enough.
func (s *Stop) prolonged() (words string, by traffic.Cause) {
	gate, o, held := &s.Stop.Gate, &s.InHold, s.held()
	if held <= gate.Floor || s.Ended == stop.NoProgress {
		return "", by
	}
	c := &o.Cause
	required := gate.Floor // for the traffic
	if gate.Adaptive() {
		required = max(gate.Floor, s.Traffic.QuietFor, s.after(c.At)+s.Traffic.QuietFor)
	}
	otherLasted := held >= required+time.Second // samples are up to a second apart

	// Both ended at once, or go on.
	onStopLasted := gate.OnStop && s.EndedAt.Sub(s.OnStopUntil).Abs() < time.Second

	var others phrases // which it waited for
	for _, path := range s.WaitGone {
		others = append(others, pathWord(path))
	}
	if s.WaitURL != nil {
		others = append(others, pathWord(s.WaitURL.URL))
	}
	switch {
	case o.URLState != "":
		words = InWords("%s, which %s", others[len(others)-1], o.URLState)
	case len(o.PathsPresent) > 0:
		words = pathWord(o.PathsPresent[0])
	case otherLasted && onStopLasted:
		words = InWords("--on-stop, which ran until +%s", s.when(cmp.Or(s.OnStopUntil, s.Now)))
	case otherLasted && len(others) > 0:
		words = quote.Cut(strings.Join(others, " or "), 500)
	case required == gate.Floor || c.Kind == traffic.NoCause,
		c.Kind == traffic.Probe && s.Traffic.Probes == traffic.IgnoreProbes: // until it was recognized
	case o.Observer == Datagrams:
		return InWords("datagrams until +%s", s.when(c.At)), *c
	case o.sees():
		sentence := byTraffic[c.Kind]
		if c.Unanswered {
			sentence = "bytes %[2]s, never answered, until +%[1]s"
		}
		return InWords(sentence, s.when(c.At), origin(c), c.Received, seconds(c.Period)), *c
	}
	return words, by
}

// held returns how long the hold was, or is by now.
func (s *Stop) held() time.Duration { return s.after(cmp.Or(s.EndedAt, s.Now)) }

// origin returns the peer and the local port of a cause in words, as far as they are known.
func origin(c *traffic.Cause) string {
	from := "from an unknown peer"
	if c.Peer.IsValid() {
		from = InWords("from %v", c.Peer)
	}
	if c.Port > 0 {
		return InWords("%s on port %d", from, c.Port)
	}
	return from
}

// pathWord returns a path for printing, cut if it is very long.
func pathWord(path string) string { return quote.Word(quote.Cut(path, 120)) }
