package traffic

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
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
	t.complete = !rest.Incomplete && t.finish(!t.complete)
}

// finish makes the current sample the latest complete one. After an incomplete sample the
// program may have made progress.
func (t *Tracker) finish(afterGap bool) bool {
	t.dropMissing()
	t.dropSeries()
	longest := t.queues.longest(t.now)
	t.queues.endProgress(t.now, longest.length > 0 || t.current.unread, t.current.bytesUnknown || afterGap)
	t.latest = t.current
	t.halfOpen = max(t.halfOpen, t.latest.halfOpen)
	t.countProbes()
	t.findCause(longest)
	return true
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
	id := identity(s)
	c, known := t.conns[id]
	delete(t.conns, id)
	if !known {
		c = &conn{isNew: true}
		t.arrivals.add(at.sinceTrigger())
	}
	m := c.update(s, at, known)
	t.noteOpened(c, at, m.unseen || !receivedNothing(s))
	if s.Info.Sent > 0 {
		t.queues.accepted[s.Local.Port()] = true
	}
	t.queues.madeProgress = t.queues.madeProgress || m.served() || !known && s.Info.Sent > 0
	if c.isNew && c.opened == 0 {
		t.bare++
	}
	came := at
	if !m.unseen {
		came -= moment(s.Info.LastReceived)
	}
	t.forget(c, came, at, 0)
}

// addUnseen adds connections and bytes that the kernel has counted and no sample shows.
func (t *Tracker) addUnseen(rest *Rest) {
	a := &t.arrivals
	if !rest.MissedAt.IsZero() {
		a.missed = true
		t.markActive(t.moment(rest.MissedAt))
	}
	if rest.Opened > a.accepted-a.atSample { // until the event tells more
		t.current.addBoth(activity{t.now, t.now})
	}
	if rest.Accepted > 0 {
		t.markActive(t.now)
		a.addCounted(t.now.sinceTrigger(), rest.Accepted)
	}
	a.atSample = a.accepted
	if rest.Segments && t.current.withoutInfo { // any segment may have carried bytes of an open connection
		t.closed.add(activity{moved: t.now})
	}
}

// markActive notes activity whose connection is not known yet.
func (t *Tracker) markActive(at moment) {
	t.closed.add(activity{at, at})
	t.arrivals.crowded = max(t.arrivals.crowded, at)
}

// dropMissing removes the connections that the samples of Config.Poll did not show, two
// samples at least. Until then an event may report the end of the connection, which counts
// as activity.
func (t *Tracker) dropMissing() {
	for id, c := range t.conns {
		if c.sample == t.sampleNo {
			continue
		}
		first := c.missedAt == 0
		if first {
			c.missedAt = t.now
		}
		if first || time.Duration(t.now-c.missedAt) < t.cfg.Poll {
			t.current.addBoth(activity{c.opened, t.now})
			continue
		}
		delete(t.conns, id)
		c.moved = c.missedAt // a byte may have moved until then
		came := c.rhythm.last.at
		if came == 0 {
			came = c.moved
		}
		t.noteOpened(c, c.moved, true)
		t.forget(c, came, t.now, t.cfg.Poll)
		t.queues.madeProgress = true // perhaps
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
	if !c.mayBeProbe(closed) || !t.addProbe(c, came, late) {
		t.closed.add(c.activity)
	}
}

// identity returns the kernel's cookie of a connection, or the ConnKey.
func identity(s *tcp.Socket) uint64 {
	if s.Cookie != 0 {
		return s.Cookie
	}
	return ConnKey(s.Local, s.Remote)
}

// ConnKey returns a hash of both ends of a connection.
func ConnKey(local, remote netip.AddrPort) uint64 {
	var ends [36]byte
	put(ends[:18], local)
	put(ends[18:], remote)
	h := fnv.New64a()
	h.Write(ends[:])
	return h.Sum64()
}

func put(to []byte, end netip.AddrPort) {
	addr := end.Addr().As16()
	copy(to, addr[:])
	binary.NativeEndian.PutUint16(to[16:], end.Port())
}
