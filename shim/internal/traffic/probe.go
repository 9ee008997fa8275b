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

// maxInterleaved is how many connections of one key may come in a period: the liveness and
// the readiness probe of a container may ask for the same page.
const maxInterleaved = 2

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

// series is the short connections of one key.
type series struct {
	all     activity               // of all connections
	rhythms [maxInterleaved]rhythm // of each connection and the next, and the next but one
	count   int
	steady  bool // has been left out; on a busy machine a probe is late at times
}

// add adds a connection: at is when it came.
func (s *series) add(a activity, at moment) {
	latest := arrival{at, s.all}
	for i := range s.rhythms {
		r := &s.rhythms[i]
		r.add(at, i+1)
		latest, r.last = r.last, latest
	}
	s.count++
	s.all.add(a) // the last to end need not be the last to come
}

// period returns the period of the first rhythm that is regular, 0 without one, or without a series.
// Evenly interleaved probes look like a single probe.
func (s *series) period() (period time.Duration) {
	if s != nil {
		_, period = s.counted(IgnoreProbes, 0)
	}
	return period
}

// counted returns the latest activity of a series that counts by a rule, and the period of probes that
// are left out, if any. Every other connection of an even series has twice its period, which proves
// nothing about whole seconds.
func (s *series) counted(rule ProbeRule, quietFor time.Duration) (latest activity, period time.Duration) {
	for i := range s.rhythms {
		r := &s.rhythms[i]
		isRegular := r.equal >= 2*(i+1) // two gaps in a row are equal, of each of the interleaved probes
		lasts := r.last.at-r.first.at+minTolerance >= patience*quietFor && r.equal >= minEqualGaps*(i+1)
		// The mean gap of probes is within 0.5 % of whole seconds. A loop in a shell that sleeps for a second
		// takes longer than a second.
		mean := r.sum / time.Duration(max(r.equal, 1))
		isWhole := (mean - mean.Round(time.Second)).Abs() <= mean/200
		isProbe := lasts && isWhole && (i == 0 || s.rhythms[0].equal < 2)
		if rule == IgnoreProbes && isRegular || rule == IgnoreProbesPatiently && isProbe {
			return r.first.before, r.gap
		}
	}
	return s.all, 0
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

// minPeriod is the shortest period of a health probe, and how far apart interleaved probes
// are on average. What comes more often is traffic.
const minPeriod = 500 * time.Millisecond

// rhythm counts equal gaps in a row.
type rhythm struct {
	gap   time.Duration // the first of the gaps
	equal int           // gaps equal to the first, itself included
	sum   time.Duration // of these gaps
	first arrival       // the start of the first gap
	last  arrival       // the start of the next gap
}

// minTolerance is how unpunctual probes are at least. The tolerance of longer periods is
// 5 %.
const minTolerance = 25 * time.Millisecond

// add adds the gap from r.last to the time at. The gap before the first arrival is longer than
// any other.
func (r *rhythm) add(at moment, interleaved int) {
	gap := at - r.last.at
	switch {
	case gap < minPeriod*time.Duration(interleaved):
		r.equal = 0
	case r.equal > 0 && (gap-r.gap).Abs() <= max(r.gap/20, minTolerance):
		r.equal++
		r.sum += gap
	default:
		*r = rhythm{gap: gap, equal: 1, sum: gap, first: r.last, last: r.last}
	}
}

// minEqualGaps is how many gaps are equal if a probe has come four times.
const minEqualGaps = 3

// patience is for how many times QuietFor a probe must have come like clockwork, from the first
// to the last, before the probe is left out patiently: a client of a balancer that lets go would
// have stopped.
const patience = 2
