package traffic

import (
	"cmp"
	"net/netip"
	"sort"
	"time"
)

// A health probe is a short connection with few bytes.
const (
	maxProbeAge   = 2 * time.Second
	maxProbeBytes = 2048
)

// minProbePeriod is the shortest period of a health probe. Connections that come more
// often are traffic.
const minProbePeriod = 500 * time.Millisecond

// maxProbeKeys limits the series of short connections. Connections of further keys are
// traffic.
const maxProbeKeys = 1024

// probeKey is equal for all connections of a health probe.
type probeKey struct {
	peer     netip.Addr
	port     uint16
	received uint64
}

// probeSeries is the short connections of one key. Two equal gaps in a row make a
// pattern.
type probeSeries struct {
	activity           // of all connections; the last is in time if the series is a pattern
	previous activity  // of all connections but the last
	at       time.Time // when the last connection ended
	gap      time.Duration
	period   time.Duration // 0: no pattern
}

type probes map[probeKey]*probeSeries

// mayBeProbe reports whether a connection closed at that time came after the trigger, and
// was short and small enough for a health probe.
func (c *conn) mayBeProbe(closed time.Time) bool {
	return !c.opened.IsZero() && closed.Sub(c.opened) <= maxProbeAge && c.received <= maxProbeBytes
}

// add adds a closed connection to the series of its key; late is how long before the time
// at the connection may have ended. A gap out of time makes traffic of the whole series:
// the activity returned is the part that the series no longer holds. added is false if a
// new series would exceed maxProbeKeys.
func (p probes) add(c *conn, at time.Time, late time.Duration) (irregular activity, added bool) {
	key := probeKey{c.peer, c.port, c.received}
	series := p[key]
	if series == nil {
		if len(p) == maxProbeKeys {
			return activity{}, false
		}
		p[key] = &probeSeries{activity: c.activity, at: at}
		return activity{}, true
	}
	gap := at.Sub(series.at)
	if !series.continues(gap, late) {
		series.period = 0
		irregular = series.previous
	}
	series.previous = series.activity
	series.activity.add(c.activity) // the last to end need not be the last to come
	series.at = at
	series.gap = gap
	return irregular, true
}

// continues reports whether the next gap fits the pattern, of which some connections may
// have been missed, or makes a pattern with the gap before.
func (s *probeSeries) continues(gap, late time.Duration) bool {
	if s.period > 0 {
		periods := max(1, gap.Round(s.period)/s.period)
		return similar(gap, periods*s.period, late)
	}
	if gap >= minProbePeriod && s.gap > 0 && similar(gap, s.gap, late) {
		s.period = gap
	}
	return s.period > 0
}

// similar reports whether two gaps are equal, as far as probes are punctual and their
// ends are known in time.
func similar(a, b, late time.Duration) bool { return (a - b).Abs() <= max(a/10, late) }

// Pattern is a series of connections that look like a health probe.
type Pattern struct {
	Peer     netip.Addr
	Port     uint16 // the local port
	Received uint64 // bytes each time
	Period   time.Duration
}

// patterns returns the patterns, the most frequent first.
func (p probes) patterns() (list []Pattern) {
	for key, series := range p {
		if series.period > 0 {
			list = append(list, Pattern{key.peer, key.port, key.received, series.period})
		}
	}
	sort.Slice(list, func(i, k int) bool {
		a, b := &list[i], &list[k]
		return cmp.Or(cmp.Compare(a.Period, b.Period), a.Peer.Compare(b.Peer), cmp.Compare(a.Received, b.Received), cmp.Compare(a.Port, b.Port)) < 0
	})
	return list
}
