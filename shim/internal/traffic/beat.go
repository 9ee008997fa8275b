package traffic

import (
	"cmp"
	"net/netip"
	"sort"
	"time"
)

// What a health probe looks like: short, and few bytes.
const (
	brief = 2 * time.Second
	few   = 2048
)

// fastest is the shortest period of a probe: what comes more often is traffic.
const fastest = 500 * time.Millisecond

// shapes is how many kinds of short connections are told apart. Further ones are
// traffic.
const shapes = 1024

// shape is what a probe's connections have in common.
type shape struct {
	peer     netip.Addr
	port     uint16
	received uint64
}

// beat is the short connections of one shape. Two gaps between them that are the
// same make a pattern.
type beat struct {
	activity           // of the last one, in time if there is a pattern
	before   activity  // of the one before it
	at       time.Time // when it ended
	gap      time.Duration
	period   time.Duration // 0: no pattern
}

// beat adds a connection to those of its shape, and reports false where there are
// too many shapes. One that is out of time makes traffic of all of them.
func (j *Judge) beat(c conn, at time.Time, late time.Duration) bool {
	s := shape{c.peer, c.port, c.received}
	b := j.beats[s]
	if b == nil {
		if len(j.beats) < shapes {
			j.beats[s] = &beat{activity: c.activity, at: at}
		}
		return j.beats[s] != nil
	}
	gap := at.Sub(b.at)
	times := max(1, gap.Round(b.period)/max(b.period, 1)) // some may have been missed
	switch {
	case b.period > 0 && same(gap, times*b.period, late):
	case b.period == 0 && gap >= fastest && b.gap > 0 && same(gap, b.gap, late):
		b.period = gap
	default: // nor was what seemed to be one a pattern
		b.period = 0
		j.activity.add(b.before)
	}
	b.before, b.activity, b.at, b.gap = b.activity, c.activity, at, gap
	return true
}

// same reports whether two gaps are, as far as probes keep time and ends are told of
// in time.
func same(a, b, late time.Duration) bool { return (a - b).Abs() <= max(a/10, late) }

// Pattern is what looks like a health probe.
type Pattern struct {
	Peer     netip.Addr
	Port     uint16 // the local one
	Received uint64 // bytes each time
	Period   time.Duration
}

func (j *Judge) patterns() (list []Pattern) {
	for s, b := range j.beats {
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
