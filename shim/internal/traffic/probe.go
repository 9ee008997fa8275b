package traffic

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
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

// key returns the key of a connection: what the program has not read, such as a close_notify
// of TLS or a FIN, may or may not have arrived.
func (c *conn) key() probeKey {
	return probeKey{c.peer, c.port, c.received - min(uint64(c.queues[0]), c.received)}
}

// mayBeProbe reports whether a connection closed at that time came after the trigger, and
// was short and small enough for a health probe.
func (c *conn) mayBeProbe(closed moment) bool {
	return c.opened != 0 && time.Duration(closed-c.opened) <= maxProbeAge && c.received <= maxProbeBytes
}

// arrival is a connection of a series, or the bytes of a beat.
type arrival struct {
	at     moment
	before activity // of all that came earlier
}

// series is the short connections of one key.
type series struct {
	activity                         // of all connections
	latest   [maxInterleaved]arrival // the latest first
	rhythms  [maxInterleaved]rhythm  // of each arrival and the next, and the next but one
	count    int
	steady   bool // has been left out; on a busy machine a probe is late at times
}

// add adds a connection: at is when it came, and late how imprecise that is.
func (s *series) add(a activity, cfg *Config, at moment, late time.Duration) {
	for i := range min(s.count, maxInterleaved) {
		s.rhythms[i].add(&s.latest[i], at, late, i+1)
	}
	copy(s.latest[1:], s.latest[:])
	s.latest[0] = arrival{at, s.activity}
	s.count++
	s.activity.add(a) // the last to end need not be the last to come
	_, leftOut := s.leftOut(cfg, at)
	s.steady = s.steady || leftOut
}

// period returns the period of the first rhythm that is regular, 0 without one. Evenly
// interleaved probes look like a single probe.
func (s *series) period() time.Duration {
	for i := range s.rhythms {
		if s.rhythms[i].regular(i + 1) {
			return s.rhythms[i].gap
		}
	}
	return 0
}

// leftOut returns the activity before the probes, if they are left out now. Of connections
// that come evenly every second one has twice the period, which proves nothing about whole
// seconds.
func (s *series) leftOut(cfg *Config, now moment) (before activity, ok bool) {
	for i := range s.rhythms {
		r := &s.rhythms[i]
		isEven := i > 0 && cfg.Probes != IgnoreProbes && s.rhythms[0].regular(1)
		if r.probing(cfg, now, i+1) && !isEven {
			return r.first.before, true
		}
	}
	return activity{}, false
}

// probes are the series of closed connections.
type probes map[probeKey]*series

// of returns the series of a connection, nil without a series. The bytes received may be a
// byte too few, see [tcp.Socket.DiscountFIN].
func (p probes) of(c *conn) *series {
	key := c.key()
	for _, received := range [...]uint64{key.received, key.received + 1, key.received - 1} {
		key.received = received
		if found := p[key]; found != nil {
			return found
		}
	}
	return nil
}

// addProbe adds a closed connection to the series of its key: came is when the connection
// came, and late how imprecise that is. The result is false if the table is full.
func (t *Tracker) addProbe(c *conn, came moment, late time.Duration) bool {
	found := t.probes.of(c)
	if found == nil {
		if len(t.probes) >= maxProbeKeys {
			return false
		}
		found = &series{}
		t.probes[c.key()] = found
	}
	found.add(c.activity, &t.cfg, came, late)
	return true
}

// dropSeries makes room for new series if the table is full. A probe that comes less often
// than every QuietFor does not prolong a hold, so a series without a rhythm that has paused
// for longer is traffic.
func (t *Tracker) dropSeries() {
	if len(t.probes) < maxProbeKeys {
		return
	}
	longest := t.cfg.QuietFor + t.cfg.QuietFor/4
	for key, found := range t.probes {
		if time.Duration(t.now-found.latest[0].at) > longest && found.period() == 0 {
			t.closed.add(found.activity)
			delete(t.probes, key)
		}
	}
}

// countProbes finds out whether what may be left out patiently is too much for probes.
// The clients that remain when others have gone are no probes, either.
func (t *Tracker) countProbes() {
	if t.cfg.Probes != IgnoreProbesPatiently || len(t.probes) <= maxProbes {
		return
	}
	n := 0
	for _, found := range t.probes {
		if _, leftOut := found.leftOut(&t.cfg, t.now); leftOut {
			n++
		}
	}
	if n > maxProbes {
		t.cfg.Probes = CountProbes
	}
}

// withoutProbes returns the latest activity, given that of open connections, without the
// short connections that are left out.
func (t *Tracker) withoutProbes(open activity) activity {
	open.add(t.closed)
	for _, found := range t.probes {
		a, leftOut := found.leftOut(&t.cfg, t.now)
		if !leftOut {
			a = found.activity
		}
		open.add(a)
	}
	return open
}

// Pattern is what looks like a health probe.
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
	for key, found := range t.probes {
		if period := found.period(); period > 0 {
			_, leftOut := found.leftOut(&t.cfg, t.now)
			list = append(list, Pattern{key.peer, key.port, key.received, period, found.count, leftOut})
		}
	}
	onKept := 0
	for _, c := range t.conns {
		if b := &c.rhythm; b.regular(1) && onKept < maxProbes {
			onKept++
			list = append(list, Pattern{c.peer, c.port, b.bytes, b.gap, b.equal + 1, t.leavesOut(c)})
		}
	}
	slices.SortFunc(list, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), a.Peer.Compare(b.Peer),
			cmp.Compare(a.Received, b.Received), cmp.Compare(a.Port, b.Port))
	})
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

// minTolerance is how unpunctual probes are at least. The tolerance of longer periods is
// 5 %.
const minTolerance = 25 * time.Millisecond

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

// minEqualGaps is how many gaps are equal if a probe has come four times.
const minEqualGaps = 3

// patience is for how many times QuietFor a probe must have come like clockwork before
// the probe is left out patiently: a client of a balancer that lets go would have stopped.
const patience = 2

// probing reports whether what comes at the rhythm of several interleaved probes is left
// out by the rule of cfg.
func (r *rhythm) probing(cfg *Config, now moment, interleaved int) bool {
	switch cfg.Probes {
	case IgnoreProbes:
		return r.regular(interleaved)
	case CountProbes:
		return false
	}
	lasts := time.Duration(now-r.first.at) >= patience*cfg.QuietFor
	return lasts && r.equal >= minEqualGaps*interleaved && r.wholeSeconds()
}

// wholeSeconds reports whether the mean gap is within 0.5 % of whole seconds, as of a probe. A
// loop in a shell that sleeps for a second takes longer than a second.
func (r *rhythm) wholeSeconds() bool {
	mean := r.sum / time.Duration(r.equal)
	return (mean - mean.Round(time.Second)).Abs() <= mean/200
}

// regular reports whether two gaps in a row are equal, of each of the interleaved probes.
func (r *rhythm) regular(interleaved int) bool { return r.equal >= 2*interleaved }

// byteRhythm is the rhythm of equal numbers of bytes received on a kept connection.
type byteRhythm struct {
	rhythm
	last  arrival       // at is 0 if no byte was received
	waits time.Duration // since last, how long a request was in flight
	bytes uint64        // received at the latest beat
}

// add notes the bytes that moved between two samples: before is the activity before these
// bytes, and inFlight whether the earlier sample showed a request in flight. A client that
// waits for an answer most of the time is no probe, though it may send the same bytes again
// and again: the PINGs or WINDOW_UPDATEs of a stream.
func (b *byteRhythm) add(s *tcp.Socket, m *moves, now moment, before activity, inFlight bool) {
	if m.received == 0 {
		if m.sent > 0 && !inFlight { // not a response: the program sends by itself
			b.bytes = 0
		}
		return
	}
	at := now - moment(s.Info.LastReceived)
	if m.received != b.bytes || m.received > maxProbeBytes || b.waits > time.Duration(at-b.last.at)/2 {
		b.bytes = m.received
		b.rhythm = rhythm{}
	} else {
		b.rhythm.add(&b.last, at, minTolerance, 1)
	}
	b.last = arrival{at, before}
	b.waits = 0
}

// leavesOut reports whether the bytes of a kept connection are left out. Many clients call at a
// rhythm: only the user can know that this one is a probe.
func (t *Tracker) leavesOut(c *conn) bool {
	return t.cfg.Probes == IgnoreProbes && c.rhythm.regular(1)
}
