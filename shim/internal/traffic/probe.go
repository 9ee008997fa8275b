package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
)

// ProbeRule says when traffic that looks like a health probe is left out.
type ProbeRule uint8

// The rules.
const (
	IgnoreProbesPatiently ProbeRule = iota // when all other traffic has been silent for QuietFor
	IgnoreProbes                           // at once: two equal gaps are enough
	CountProbes                            // never
)

// A health probe is a short connection with few bytes.
const (
	maxProbeAge   = 2 * time.Second
	maxProbeBytes = 2048
)

// maxProbeKeys is how many series of short connections are kept if they have no rhythm.
const maxProbeKeys = 1024

// maxProbes is how many probes are left out patiently. More clients that call like
// clockwork are no probes.
const maxProbes = 8

// keyOf returns what is equal for all connections of a health probe. What the program has not
// read, such as a close_notify of TLS or a FIN, may or may not have arrived.
func keyOf(c *ledger.Conn) Pattern {
	read := c.Received - min(uint64(c.Unread), c.Received)
	return Pattern{Peer: c.Remote.Addr(), Port: c.Local.Port(), Received: read}
}

// arrival is a connection of a series.
type arrival struct {
	at     moment
	before activity // of all that came earlier
}

// series is the short connections of one key, and the gaps between them that are equal, in a row.
type series struct {
	all    activity // of all connections
	count  int
	steady bool // has been left out; on a busy machine a probe is late at times

	gap   time.Duration // the first of the equal ones
	equal int           // how many are, the first included
	sum   time.Duration // of these gaps
	first arrival       // the start of the first gap
	last  arrival       // the start of the next gap
}

// add adds a connection: at is when it came. The gap before the first is longer than any other.
func (s *series) add(a activity, at moment) {
	gap := at - s.last.at
	switch {
	case gap < minPeriod:
		s.equal = 0
	case s.equal > 0 && (gap-s.gap).Abs() <= max(s.gap/20, minTolerance):
		s.equal++
		s.sum += gap
	default:
		s.gap, s.equal, s.sum, s.first = gap, 1, gap, s.last
	}
	s.last = arrival{at, s.all}
	s.count++
	s.all.Add(a) // the last to end need not be the last to come
}

// period returns the gap if two in a row are equal, 0 if not, or without a series.
func (s *series) period() time.Duration {
	if s == nil || s.equal < 2 {
		return 0
	}
	return s.gap
}

// counted returns the latest activity of a series that counts by a rule, and whether the probes of equal
// gaps are left out.
func (s *series) counted(rule ProbeRule, quietFor time.Duration) (latest activity, leftOut bool) {
	isLong := s.last.at-s.first.at+minTolerance >= patience*quietFor && s.equal >= minEqualGaps
	if rule == IgnoreProbes && s.period() > 0 || rule == IgnoreProbesPatiently && isLong && s.wholeSeconds() {
		return s.first.before, true
	}
	return s.all, false
}

// Pattern is what looks like a health probe.
type Pattern struct {
	Peer     netip.Addr
	Port     uint16 // the local port
	Received uint64 // bytes each time
	Period   time.Duration
	Count    int // how many came since the trigger
	Last     time.Time
	LeftOut  bool // in the latest sample
}

// minPeriod is the shortest period of a health probe. What comes more often is traffic.
const minPeriod = 500 * time.Millisecond

// minTolerance is how unpunctual probes are at least. The tolerance of longer periods is
// 5 %.
const minTolerance = 25 * time.Millisecond

// minEqualGaps is how many gaps are equal if a probe has come four times.
const minEqualGaps = 3

// patience is for how many times QuietFor a probe must have come like clockwork, from the first
// to the last, before the probe is left out patiently: a client of a balancer that lets go would
// have stopped.
const patience = 2

// wholeSeconds reports whether the mean gap is within 0.5 % of whole seconds, as of a probe. A
// loop in a shell that sleeps for a second takes longer than a second.
func (s *series) wholeSeconds() bool {
	mean := s.sum / time.Duration(s.equal)
	return (mean - mean.Round(time.Second)).Abs() <= mean/200
}
