package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Rest is the part of a sample that the list of sockets does not show.
type Rest struct {
	Incomplete bool // the list of sockets could not be read to its end: no condition holds
	NewSource  bool // the next sample comes from another source, which may identify connections differently

	Closed   []Closed  // connections closed since the previous sample; End only reads the slice
	MissedAt time.Time // the latest time at which connections may have been missed: activity; zero: never
	Opened   int       // connections the kernel accepted since the previous sample, events of which will come; 0: unknown
	Accepted int       // connections the kernel accepted since the start, if new; 0: unknown, or as before
	Segments bool      // TCP segments have arrived in the network namespace since the previous sample
}

// Closed is a closed connection as the kernel last knew the socket. Many connections are
// so short that no sample shows them.
type Closed struct {
	Socket tcp.Socket
	At     time.Time // when the event was read
}

// End ends a sample.
func (t *Tracker) End(rest Rest) {
	for i := range rest.Closed {
		t.addClosed(&rest.Closed[i])
	}
	t.addUnseen(&rest)
	if rest.NewSource {
		t.sourceEnded = t.now
	}
	if rest.NewSource || rest.Incomplete && t.firstSample == t.sampleNo {
		t.firstSample = t.sampleNo + 1
	}
	if rest.Incomplete {
		t.complete = false
		return
	}
	t.dropMissing()
	t.dropSeries()
	longest := t.queues.end(t.now)
	t.progress.end(t.now, longest.length > 0 || t.sample.unread, t.sample.bytesUnknown || !t.complete)
	t.lastSample = t.sample
	t.complete = true
	t.countProbes()
	t.findCause(longest)
}

// addClosed adds a closed connection, which may be new. A listener, or a socket that was
// never connected, has no remote address. The kernel keeps no bytes of a connection that
// the program has reset.
func (t *Tracker) addClosed(closed *Closed) {
	s := &closed.Socket
	if t.cfg.ignores(s) || s.Remote.Addr().IsUnspecified() {
		return
	}
	at := t.moment(closed.At)
	c, known := t.conns.take(identity(s))
	if !known {
		c.isNew = true
		t.arrivals.add(at.sinceTrigger())
	}
	m := c.update(s, at, known)
	if s.Info.Sent > 0 {
		t.queues.accepted[s.Local.Port()] = true
	}
	t.progress.made = t.progress.made || m.served() || !known && s.Info.Sent > 0
	if m.unseen && c.isNew && c.opened == 0 {
		c.opened = at
	}
	if c.isNew && c.opened == 0 {
		t.causes.bare++
	}
	came := at
	if !m.unseen {
		came -= moment(s.Info.LastReceived)
	}
	t.forget(&c, came, at, 0)
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (t *Tracker) addUnseen(rest *Rest) {
	if !rest.MissedAt.IsZero() {
		t.arrivals.missed = true
		t.markActive(t.moment(rest.MissedAt))
	}
	if rest.Opened > t.arrivals.sinceSample() { // until the event tells more
		t.sample.addBoth(activity{t.now, t.now})
		t.arrivals.latest = t.now.sinceTrigger()
	}
	if rest.Accepted > 0 {
		t.markActive(t.now)
		t.arrivals.addCounted(t.now.sinceTrigger(), rest.Accepted)
	}
	t.arrivals.endSample()
	if rest.Segments && t.sample.withoutInfo { // any segment may have carried bytes of an open connection
		t.closed.add(activity{moved: t.now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at moment) {
	t.closed.add(activity{at, at})
	t.arrivals.openings.crowded = max(t.arrivals.openings.crowded, at)
	t.arrivals.latest = max(t.arrivals.latest, at.sinceTrigger())
}

// dropMissing removes the connections that the samples of Config.Poll did not show, two
// samples at least. Until then an event may report the end of the connection, which counts
// as activity.
func (t *Tracker) dropMissing() {
	for s := range t.conns.notIn(t.sampleNo) {
		first := s.missedAt == 0
		if first {
			s.missedAt = t.now
		}
		if first || time.Duration(t.now-s.missedAt) < t.cfg.Poll {
			t.sample.addBoth(activity{s.opened, t.now})
			continue
		}
		c, _ := t.conns.take(s.id)
		c.moved = c.missedAt // a byte may have moved until then
		came := c.course.last.at
		if came == 0 {
			came = c.moved
		}
		if c.isNew && c.opened == 0 {
			c.opened = c.moved
		}
		t.forget(&c, came, t.now, t.cfg.Poll)
		t.progress.made = true // perhaps
	}
}

// addBoth adds activity that counts in any case.
func (y *tally) addBoth(a activity) {
	y.activity.add(a)
	y.counted.add(a)
}

// forget keeps only the activity of a connection closed at a time; came is when the last
// byte was received, and late how imprecise that is.
func (t *Tracker) forget(c *conn, came, closed moment, late time.Duration) {
	t.noteActivity(c)
	if c.mayBeProbe(closed) && t.probes.add(c, &t.cfg, came, late) {
		return
	}
	t.closed.add(c.activity)
}
