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

// maxEventDelay is how late an event may be read after the end of a connection.
const maxEventDelay = 50 * time.Millisecond

// End ends a sample.
func (t *Tracker) End(rest Rest) {
	for i := range rest.Closed {
		t.addClosed(&rest.Closed[i])
	}
	t.addUnseen(&rest)
	if rest.NewSource {
		t.firstSample = t.sampleNo + 1
	}
	if rest.Incomplete {
		t.complete = false
		return
	}
	t.dropMissing()
	if t.sample.queued > 0 || t.sample.handshaking {
		t.markActive(t.now)
	}
	if t.madeProgress() {
		t.progress.at = t.now
	}
	t.progress.responded = false
	t.lastSample = t.sample
	t.complete = true
}

// addClosed adds a closed connection, which may be new. A listener, or a socket that was
// never connected, has no remote address.
func (t *Tracker) addClosed(closed *Closed) {
	s := &closed.Socket
	if t.cfg.ignores(s) || s.Remote.Addr().IsUnspecified() {
		return
	}
	c, known := t.conns.take(identity(s))
	if !known {
		c.opened = closed.At
		t.arrivals.add(closed.At.Sub(t.start))
	}
	c.update(s, closed.At, known)
	t.progress.responded = t.progress.responded || s.Info.Sent > 0
	t.forget(&c, closed.At, maxEventDelay)
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (t *Tracker) addUnseen(rest *Rest) {
	if !rest.MissedAt.IsZero() {
		t.arrivals.missed = true
		t.markActive(rest.MissedAt)
	}
	if rest.Opened > t.arrivals.sinceSample() {
		t.markActive(t.now)
	}
	if rest.Accepted > 0 {
		t.markActive(t.now)
		t.arrivals.addCounted(t.now.Sub(t.start), rest.Accepted)
	}
	t.arrivals.endSample()
	if rest.Segments && t.sample.withoutInfo { // any segment may have carried bytes of an open connection
		t.closed.add(activity{moved: t.now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at time.Time) { t.closed.add(activity{at, at}) }

// dropMissing removes the connections that two samples in a row did not show. An event
// may still report the end of a connection missing from only this sample, which counts
// as activity until then.
func (t *Tracker) dropMissing() {
	for s := range t.conns.notIn(t.sampleNo) {
		if s.sample == t.sampleNo-1 {
			t.sample.activity.add(activity{s.opened, t.now})
			s.missedAt = t.now
			continue
		}
		c, _ := t.conns.take(s.id)
		c.moved = c.missedAt // a byte may have moved until then
		if c.missedAt.IsZero() {
			c.moved = t.now
		}
		t.forget(&c, t.now, t.cfg.Poll)
		t.progress.responded = true // perhaps
	}
}

// madeProgress reports whether the program has, as far as the sample shows, accepted or
// answered a connection since the previous sample, or had none waiting.
func (t *Tracker) madeProgress() bool {
	y := &t.sample
	return y.accepted || y.bytesUnknown || t.progress.responded || y.queued == 0 || t.lastSample.queued == 0 || !t.complete
}

// forget keeps only the activity of a closed connection; late is how long before the time at
// the connection may have ended.
func (t *Tracker) forget(c *conn, at time.Time, late time.Duration) {
	if c.mayBeProbe(at) {
		irregular, added := t.probes.add(c, at, late)
		t.closed.add(irregular)
		if added {
			return
		}
	}
	t.closed.add(c.activity)
	t.noteActive(c)
}
