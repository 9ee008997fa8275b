package traffic

import (
	"hash/maphash"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// moment is a time, cheap to compare and to keep for each connection: the time since long
// before the trigger. The zero moment is before all others.
type moment = time.Duration

// trigger is the moment of the trigger.
const trigger moment = 1 << 61

// activity is when the latest connection came, and when the latest byte moved; 0: never.
type activity struct{ opened, moved moment }

func (a *activity) add(b activity) {
	a.opened = max(a.opened, b.opened)
	a.moved = max(a.moved, b.moved)
}

func (a *activity) last() moment { return max(a.opened, a.moved) }

// conn is a connection as the latest sample showed the socket.
type conn struct {
	activity        // opened is zero for a connection older than the trigger, or on which no byte was received
	seen     moment // the latest sample with the connection
	missedAt moment // the first sample after seen
	isNew    bool   // came after the trigger
	accepted bool

	port           uint16
	peer           netip.Addr
	received, sent uint64 // bytes; sent without bytes sent again
	queues         [2]uint32
	paused         time.Duration // of minPause or more between bytes received, as long as none was sent
	sendsSince     moment        // the first byte sent after the last one received; 0: none

	judgment
	waited bool // the last request was silent for QuietFor in the hold
	shut   bool // by NoteShut
}

// update compares s with the connection as it was before, and remembers s. It reports whether
// the program has read or sent a byte, and whether bytes may have moved unseen: a source
// without counters shows only that a queue has changed, and of a connection reset by the
// program the kernel keeps only the peer's address. Bytes sent again are no activity. Nor are
// bytes sent before the first one received, a greeting.
func (c *conn) update(before *conn, s *tcp.Socket, now moment) (served, unseen bool) {
	known := c.seen != 0
	c.port = s.Local.Port()
	c.peer = s.Remote.Addr()
	c.received = max(c.received, s.Info.Received)
	c.sent = max(c.sent, s.Info.Sent-min(s.Info.Resent, s.Info.Sent))
	c.queues = [2]uint32{s.Unread, s.Unsent}
	c.accepted = c.accepted || s.Inode != 0
	if isReset := s.Remote.Port() == 0; isReset || !s.HasInfo {
		unseen = isReset || !known || c.queues != before.queues
		if unseen {
			c.moved = max(c.moved, now)
		}
		return false, unseen
	}
	received := c.received > before.received
	sent := c.sent > before.sent
	if received && !receivedNothing(s) {
		c.moved = max(c.moved, now-s.Info.LastReceived)
	}
	if sent && (known || !receivedNothing(s)) {
		c.moved = max(c.moved, now-s.Info.LastSent)
	}
	switch {
	case received:
		c.sendsSince = 0
	case sent && c.sendsSince == 0:
		c.sendsSince = c.moved
	}
	if pause := c.moved - before.moved; received && before.moved != 0 && pause >= minPause {
		c.paused += pause
	}
	read := known && uint64(s.Unread)+before.received < c.received+uint64(before.queues[0])
	return read || sent, false
}

// A stream that nobody answers, such as a log's, has paused for minPauses in all, in pauses
// of at least minPause each. It holds like any other, and the report names it.
const (
	minPause  = 900 * time.Millisecond
	minPauses = 1800 * time.Millisecond
)

// unanswered reports whether the connection looks like a stream that the program never
// answers.
func (c *conn) unanswered() bool { return c.sent == 0 && c.paused >= minPauses }

// receivedNothing reports whether no byte ever came from the peer, as far as the source
// shows bytes. A FIN may be counted as a byte, and is no segment with data.
func receivedNothing(s *tcp.Socket) bool {
	return s.HasInfo && (s.Info.Received == 0 || s.Info.Received == 1 && s.Info.Segments == 0)
}

// follow updates the connection of a socket, which may be a new one. The program has made
// progress if it has read or sent a byte.
func (t *Tracker) follow(s *tcp.Socket, at moment, isNew bool) (c *conn, before conn, unseen bool) {
	id := Identity(s)
	c = t.conns[id]
	if c == nil {
		c = &conn{isNew: isNew}
		t.conns[id] = c
		if isNew {
			t.arrivals.shown++
			t.arrivals.count(at-trigger, t.arrivals.shown)
		}
	}
	before = *c
	served, unseen := c.update(&before, s, at)
	if served {
		t.progressAt = t.now
	}
	t.noteOpened(c, at, unseen || !receivedNothing(s))
	return c, before, unseen
}

// observe adds a connection to the sample.
func (t *Tracker) observe(s *tcp.Socket) {
	c, before, _ := t.follow(s, t.now, !t.baseline)
	c.waited = c.waited && c.received == before.received // else the next request has come
	c.seen = t.now
	if c.accepted {
		t.accepted[c.port] = true
	} else {
		t.queued = c.peer
		if s.Unread == 0 {
			t.current.wanted--
		}
	}
	t.usual.Learn(s)
	if c.accepted && !before.accepted && !t.baseline {
		t.progressAt = t.now
	}
	t.count(c, s)
	t.show(s, c, before.seen == 0, t.countRequest(c, s))
	t.noteActivity(c)
}

// noteOpened notes the first bytes of a new connection.
func (t *Tracker) noteOpened(c *conn, at moment, received bool) {
	if !c.isNew || c.opened != 0 || !received {
		return
	}
	c.opened = at
	if found := t.seriesOf(c); found != nil && found.steady && t.rule != CountProbes {
		return
	}
	a := &t.arrivals
	if at-a.latest < t.cfg.QuietFor {
		a.crowded = max(a.crowded, at)
	}
	a.latest = max(a.latest, at)
}

// addClosed adds a closed connection, which may be new. A listener, or a socket that was
// never connected, has no remote address. The kernel keeps no bytes of a connection that
// the program has reset.
func (t *Tracker) addClosed(closed *Closed) {
	s := &closed.Socket
	if t.cfg.Ignores(s) || s.Remote.Addr().IsUnspecified() {
		return
	}
	at := t.moment(closed.At)
	c, before, unseen := t.follow(s, at, true)
	t.show(s, c, before.seen == 0, Idle)
	delete(t.conns, Identity(s))
	if s.Info.Sent > 0 {
		t.accepted[c.port] = true
	}
	if c.isNew && c.opened == 0 {
		t.bare++
	}
	came := at
	if !unseen {
		came -= s.Info.LastReceived
	}
	t.forget(c, came)
}

// dropMissing removes the connections that the samples of Config.Poll did not show, two
// samples at least. Until then an event may report the end of the connection, which counts as
// activity.
func (t *Tracker) dropMissing() {
	for id, c := range t.conns {
		if c.seen == t.now {
			continue
		}
		if c.missedAt <= c.seen {
			c.missedAt = t.now
		}
		if t.now-c.missedAt < t.cfg.Poll {
			gone := *c
			gone.moved = t.now
			t.current.addConn(&gone)
			continue
		}
		delete(t.conns, id)
		c.moved = c.missedAt // a byte may have moved until then
		t.noteOpened(c, c.moved, true)
		t.forget(c, c.opened)
		t.progressAt = t.now // perhaps
	}
}

// forget keeps only the activity of a closed connection. One that may be a health probe joins
// the series of its key; came is when the last byte was received.
func (t *Tracker) forget(c *conn, came moment) {
	t.noteActivity(c)
	switch {
	case c.shut:
		t.closed.add(activity{opened: c.opened})
		t.shut = max(t.shut, c.moved)
		return
	case c.opened == 0 || t.now-c.opened > maxProbeAge || c.received > maxProbeBytes:
		t.closed.add(c.activity)
		return
	}
	found := t.seriesOf(c)
	if found == nil {
		if len(t.probes) >= maxProbeKeys {
			for key, other := range t.probes {
				if other.period() == 0 { // without a rhythm, a series is traffic
					t.closed.add(other.activity)
					delete(t.probes, key)
				}
			}
		}
		found = &series{}
		t.probes[c.key()] = found
	}
	found.add(c.activity, came)
	found.steady = found.steady || t.leavesOutSeries(found)
}

// Identity returns the kernel's cookie of a connection, or the ConnKey.
func Identity(s *tcp.Socket) uint64 {
	if s.Cookie != 0 {
		return s.Cookie
	}
	return ConnKey(s.Local, s.Remote)
}

// ConnKey returns a hash of both ends of a connection, the same as long as the process runs.
func ConnKey(local, remote netip.AddrPort) uint64 {
	return maphash.Comparable(seed, [...]netip.AddrPort{local, remote})
}

var seed = maphash.MakeSeed()
