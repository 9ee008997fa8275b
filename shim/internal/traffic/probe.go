package traffic

import (
	"cmp"
	"net/netip"
	"sort"
	"time"
)

// What a health probe looks like: short, and maxProbeBytes bytes.
const (
	maxProbeAge   = 2 * time.Second
	maxProbeBytes = 2048
)

// minProbePeriod is the shortest period of a probe: what comes more often is traffic.
const minProbePeriod = 500 * time.Millisecond

// maxProbeKeys is how many kinds of short connections are told apart. Further ones are
// traffic.
const maxProbeKeys = 1024

// probeKey is what a probe's connections have in common.
type probeKey struct {
	peer     netip.Addr
	port     uint16
	received uint64
}

// probeSeries is the short connections of one shape. Two gaps between them that are the
// same make a pattern.
type probeSeries struct {
	activity           // of the last one, in time if there is a pattern
	before   activity  // of the one before it
	at       time.Time // when it ended
	gap      time.Duration
	period   time.Duration // 0: no pattern
}

// addProbe adds a connection to those of its shape, and reports false where there are
// too many shapes. One that is out of time makes traffic of all of them.
func (j *Tracker) addProbe(c conn, at time.Time, late time.Duration) bool {
	s := probeKey{c.peer, c.port, c.received}
	b := j.probes[s]
	if b == nil {
		if len(j.probes) < maxProbeKeys {
			j.probes[s] = &probeSeries{activity: c.activity, at: at}
		}
		return j.probes[s] != nil
	}
	gap := at.Sub(b.at)
	times := max(1, gap.Round(b.period)/max(b.period, 1)) // some may have been missed
	switch {
	case b.period > 0 && similar(gap, times*b.period, late):
	case b.period == 0 && gap >= minProbePeriod && b.gap > 0 && similar(gap, b.gap, late):
		b.period = gap
	default: // nor was what seemed to be one a pattern
		b.period = 0
		j.activity.add(b.before)
	}
	b.before, b.activity, b.at, b.gap = b.activity, c.activity, at, gap
	return true
}

// similar reports whether two gaps are, as far as probes keep time and ends are told of
// in time.
func similar(a, b, late time.Duration) bool { return (a - b).Abs() <= max(a/10, late) }

// Pattern is what looks like a health probe.
type Pattern struct {
	Peer     netip.Addr
	Port     uint16 // the local one
	Received uint64 // bytes each time
	Period   time.Duration
}

func (j *Tracker) patterns() (list []Pattern) {
	for s, b := range j.probes {
		if b.period > 0 {
			list = append(list, Pattern{s.peer, s.port, s.received, b.period})
		}
	}
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return cmp.Or(cmp.Compare(a.Period, b.Period), a.Peer.Compare(b.Peer), cmp.Compare(a.Received, b.Received)) < 0
	})
	return list
}
