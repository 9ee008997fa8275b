package traffic

import (
	"cmp"
	"net/netip"
	"sort"
	"time"
)

// A health probe is a short connection with few bytes, or comes with as few bytes on a
// connection that is kept.
const (
	maxProbeAge   = 2 * time.Second
	maxProbeBytes = 2048
)

// maxProbeKeys limits the series of short connections. Connections of further keys are
// traffic, until dropSeries makes room.
const maxProbeKeys = 1024

// maxProbes is how many probes are left out patiently. More clients that call like
// clockwork are no probes.
const maxProbes = 8

// maxInterleaved is how many connections of one key may come in a period: the liveness and
// the readiness probe of a container may ask for the same page.
const maxInterleaved = 2

// probeKey is equal for all connections of a health probe.
type probeKey struct {
	peer     netip.Addr
	port     uint16
	received uint64
}

// probeSeries is the short connections of one key.
type probeSeries struct {
	activity                         // of all connections
	latest   [maxInterleaved]arrival // the latest first
	count    int
	rhythms  [maxInterleaved]rhythm // of each arrival and the next, the next but one, ...
	steady   bool                   // has been left out; on a busy machine a probe is late at times
}

// arrival is a connection of a series.
type arrival struct {
	at     moment
	before activity // of all earlier connections
}

type probes map[probeKey]*probeSeries

// probeKey returns the key of a connection: what the program has not read, such as a
// close_notify of TLS or a FIN, may or may not have arrived.
func (c *conn) probeKey() probeKey {
	unread := uint64(c.socket.queues[0])
	return probeKey{c.socket.peer, c.socket.port, c.socket.received - min(unread, c.socket.received)}
}

// mayBeProbe reports whether a connection closed at that time came after the trigger, and
// was short and small enough for a health probe.
func (c *conn) mayBeProbe(closed moment) bool {
	return c.opened != 0 && time.Duration(closed-c.opened) <= maxProbeAge && c.socket.received <= maxProbeBytes
}

// add adds a closed connection to the series of its key: at is when the connection came,
// and late how imprecise that is. The result is false if a new series would exceed
// maxProbeKeys.
func (p probes) add(c *conn, cfg *Config, at moment, late time.Duration) (added bool) {
	series := p.of(c)
	if series == nil {
		if len(p) == maxProbeKeys {
			return false
		}
		series = &probeSeries{}
		p[c.probeKey()] = series
	}
	series.add(c.activity, cfg, at, late)
	return true
}

// dropSeries makes room for new series if the table is full. A probe that comes less often than
// every QuietFor does not prolong a hold, so a series without a rhythm that has paused for
// longer is traffic.
func (t *Tracker) dropSeries() {
	if len(t.probes) < maxProbeKeys {
		return
	}
	longest := t.cfg.QuietFor + t.cfg.QuietFor/4
	for key, series := range t.probes {
		if time.Duration(t.now-series.latest[0].at) > longest && series.find((*rhythm).regular) == nil {
			t.closed.add(series.activity)
			delete(t.probes, key)
		}
	}
}

// of returns the series of a connection, nil without a series. The bytes received may be a
// byte too few, see [tcp.Socket.DiscountFIN].
func (p probes) of(c *conn) *probeSeries {
	key := c.probeKey()
	for _, received := range [...]uint64{key.received, key.received + 1, key.received - 1} {
		key.received = received
		if series := p[key]; series != nil {
			return series
		}
	}
	return nil
}

func (s *probeSeries) add(a activity, cfg *Config, at moment, late time.Duration) {
	for i := range min(s.count, maxInterleaved) {
		s.rhythms[i].add(&s.latest[i], at, late, i+1)
		s.steady = s.steady || s.rhythms[i].probing(cfg, at, i+1)
	}
	copy(s.latest[1:], s.latest[:])
	s.latest[0] = arrival{at, s.activity}
	s.count++
	s.activity.add(a) // the last to end need not be the last to come
}

// period returns the time between two connections at the rhythm of several interleaved
// probes. Evenly interleaved probes look like a single probe.
func (s *probeSeries) period(r *rhythm) time.Duration {
	even := r.gap
	for i := range s.rhythms {
		if r == &s.rhythms[i] {
			even = r.gap / time.Duration(i+1)
		}
	}
	if latest := time.Duration(s.latest[0].at - s.latest[1].at); (latest - even).Abs() <= even/5 {
		return even
	}
	return r.gap
}

// find returns the first rhythm of the series that is accepted.
func (s *probeSeries) find(accepted func(r *rhythm, interleaved int) bool) *rhythm {
	for i := range s.rhythms {
		if accepted(&s.rhythms[i], i+1) {
			return &s.rhythms[i]
		}
	}
	return nil
}

// Pattern is a series of connections that look like a health probe.
type Pattern struct {
	Peer     netip.Addr
	Port     uint16 // the local port
	Received uint64 // bytes each time
	Period   time.Duration
	Count    int  // how many came since the trigger
	LeftOut  bool // in the latest sample
}

// patterns returns the patterns, the most frequent first.
func (t *Tracker) patterns() (list []Pattern) {
	for key, series := range t.probes {
		if r := series.find((*rhythm).regular); r != nil {
			list = append(list, Pattern{key.peer, key.port, key.received, series.period(r), series.count, series.find(t.leftOut) != nil})
		}
	}
	list = append(list, t.keptPatterns()...)
	sort.Sort(byPeriod(list))
	return list
}

// byPeriod sorts patterns, the most frequent first.
type byPeriod []Pattern

func (p byPeriod) Len() int      { return len(p) }
func (p byPeriod) Swap(i, k int) { p[i], p[k] = p[k], p[i] }
func (p byPeriod) Less(i, k int) bool {
	a, b := &p[i], &p[k]
	return cmp.Or(cmp.Compare(a.Period, b.Period), a.Peer.Compare(b.Peer), cmp.Compare(a.Received, b.Received), cmp.Compare(a.Port, b.Port)) < 0
}

// keptPatterns returns the patterns on open connections, unless the patterns are too many
// for probes.
func (t *Tracker) keptPatterns() (list []Pattern) {
	for i := range t.conns.slots {
		c := &t.conns.slots[i]
		if !c.used || !c.course.beat.regular(1) {
			continue
		}
		if len(list) == maxProbes {
			return nil
		}
		beat := &c.course.beat
		list = append(list, Pattern{c.socket.peer, c.socket.port, c.course.bytes, beat.gap, beat.equal + 1, t.leavesOut(&c.conn)})
	}
	return list
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
}

// add adds the gap from an arrival to the time at; late is how imprecise times are.
func (r *rhythm) add(from *arrival, at moment, late time.Duration, interleaved int) {
	gap := time.Duration(at - from.at)
	switch {
	case gap < minPeriod*time.Duration(interleaved):
		*r = rhythm{}
	case r.equal > 0 && (gap-r.gap).Abs() <= max(r.gap/20, minTolerance)+late:
		r.equal++
		r.sum += gap
	default:
		*r = rhythm{gap: gap, equal: 1, sum: gap, first: *from}
	}
}

// minTolerance is how unpunctual probes are at least. The tolerance of longer periods is
// 5 %.
const minTolerance = 25 * time.Millisecond

// minEqualGaps is how many gaps are equal if a probe has come four times.
const minEqualGaps = 3

// probing reports whether what comes at the rhythm of several interleaved probes is left
// out by the rule of cfg.
func (r *rhythm) probing(cfg *Config, now moment, interleaved int) bool {
	switch cfg.Probes {
	case IgnoreProbes:
		return r.regular(interleaved)
	case CountProbes:
		return false
	}
	return r.equal >= minEqualGaps*interleaved && r.wholeSeconds() && time.Duration(now-r.first.at) >= patience*cfg.QuietFor
}

// wholeSeconds reports whether the mean gap is within 0.5 % of whole seconds, as of a probe. A
// loop in a shell that sleeps for a second takes longer than a second.
func (r *rhythm) wholeSeconds() bool {
	mean := r.sum / time.Duration(r.equal)
	return (mean - mean.Round(time.Second)).Abs() <= mean/200
}

// patience is for how many times QuietFor a probe must have come like clockwork before
// the probe is left out patiently: a client of a balancer that lets go would have stopped.
const patience = 2

// regular reports whether two gaps in a row are equal, of each of the interleaved probes.
func (r *rhythm) regular(interleaved int) bool { return r.equal >= 2*interleaved }
