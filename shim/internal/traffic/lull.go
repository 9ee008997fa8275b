package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// KeptFor is for how many times QuietFor no new connection has come if clients that never
// let go are all that remains: clients that keep connections through a balancer of the
// transport layer, which moves only new connections.
const KeptFor = 8

// slowAfter is the silence of a request that outlasts a search for a lull.
const slowAfter = time.Second

// requestMoved returns when the last byte of the request in flight moved, PINGs aside.
func (c *conn) requestMoved(s *tcp.Socket) moment {
	if c.course.request == InFlight && s.Unread == 0 && s.Unsent == 0 {
		return c.course.since
	}
	return c.moved
}

// openings are the new connections that count, possible health probes aside.
type openings struct {
	latest  moment
	crowded moment // of the latest that came less than QuietFor after another, or was missed
}

// noteOpened notes a new connection.
func (t *Tracker) noteOpened(c *conn) {
	if c.opened == 0 || c.noted {
		return
	}
	c.noted = true
	if series := t.probes.of(c); series != nil && series.steady && !t.tooManyProbes {
		return
	}
	o := &t.arrivals.openings
	if o.latest != 0 && time.Duration(c.opened-o.latest) < t.cfg.QuietFor {
		o.crowded = max(o.crowded, c.opened)
	}
	o.latest = max(o.latest, c.opened)
}

// isKept reports whether clients that never let go are all that remains: bytes move on open
// connections, and for KeptFor times QuietFor no new connections have come, but for single
// ones, QuietFor apart, which would not prolong a hold by themselves. A slow request may
// still be answered.
func (t *Tracker) isKept() bool {
	o := &t.arrivals.openings
	silent := func(times time.Duration, at moment) bool { return t.silence(at) >= times*t.cfg.QuietFor }
	return !t.lastSample.withoutInfo && silent(KeptFor, max(o.crowded, t.queues.activeAt, t.sourceEnded)) && silent(1, o.latest) &&
		t.recent(t.lastSample.counted.moved) && t.lastSample.slow == 0
}

// Kept counts the connections on which bytes moved less than QuietFor ago, health probes
// aside, and their peers.
type Kept struct{ Connections, Peers int }

// CountKept counts the clients that still talk, for Summary.
func (t *Tracker) CountKept() {
	peers := map[netip.Addr]int{}
	t.causes.kept = Kept{}
	for i := range t.conns.slots {
		c := &t.conns.slots[i]
		if c.used && t.recent(c.moved) && !t.leavesOut(&c.conn) {
			t.causes.kept.Connections++
			peers[c.socket.peer]++
		}
	}
	t.causes.kept.Peers = len(peers)
}

// NoneCameFor reports whether, for so long, no connection has come, with or without a byte.
// What came before the trigger is not known.
func (t *Tracker) NoneCameFor(d time.Duration) bool {
	return t.now.sinceTrigger()-t.arrivals.latest >= d && t.sample.halfOpen == 0
}

// requestDelay is how long after its handshake a client may take to send a request.
const requestDelay = 100 * time.Millisecond

// risk returns Idle if a signal now would cut no request on a connection, by the state of the
// last request. In contrast to a request in flight, a response that was sent and not
// acknowledged is not at risk, since the kernel delivers the response after the program's
// end. A client that has just connected is about to send a request.
func (t *Tracker) risk(c *conn, s *tcp.Socket, state RequestState) RequestState {
	switch {
	case !s.HasInfo || peerGone(s) || t.silence(c.moved) >= t.cfg.MaxSilence:
		return Idle
	case s.Unread > 0 || s.Info.NotSent > 0 && mayReceive(s):
		return InFlight
	case receivedNothing(s) && mayReceive(s) && s.Info.LastReceived < requestDelay:
		return InFlight
	case receivedNothing(s):
		return Idle
	case state == InFlight && s.Unsent > 0:
		delivered := *s
		delivered.Unsent = 0
		state = Classify(&delivered, t.usual)
	}
	if state == Undetermined {
		return c.turn.risk(s, t.usual, time.Duration(t.now-c.moved))
	}
	return state
}

// turn is what frequent samples show of a connection on which the last request and the last
// response were in one jiffy: whose turn it is to send.
type turn struct {
	of       party
	pureACKs uint32 // sent by the time of the last byte
	inTime   bool   // pureACKs does not include the ACK of a request that waits
}

type party uint8

const (
	unknown party = iota
	client
	program
)

// frequent is the longest interval of samples that show most requests before the response.
const frequent = 20 * time.Millisecond

// The peer of such a connection is so near that the kernel delays the pure ACK of a request
// that waits for minACK, and for less than maxACK; see tcp_send_delayed_ack in
// net/ipv4/tcp_output.c. Without knowledge of ACKs, a request is not expected to wait for
// longer than maxUnknown.
const (
	minACK     = 40 * time.Millisecond
	maxACK     = 100 * time.Millisecond
	maxUnknown = 250 * time.Millisecond
)

// add adds the bytes moved since a sample so long ago. No byte had moved for the time idle
// before the latest, which moved so long ago. A request would have acknowledged the response
// before, so bytes not acknowledged are a response that no request has followed. After a
// request and a response in one interval, the turn is whose the turn was.
func (u *turn) add(m *moves, s *tcp.Socket, usual Usual, interval, idle, ago time.Duration) {
	moved := m.received > 0 || m.sent > 0
	both := m.received > 0 && m.sent > 0
	switch {
	case s.Unsent > 0:
		u.of = client
	case moved && interval > frequent:
		u.of = unknown
	case both && u.risk(s, usual, idle) == Idle:
		u.of = client
	case both:
	case m.received > 0:
		u.of = program
	case m.sent > 0:
		u.of = client
	}
	if moved {
		u.pureACKs = s.Info.PureACKs
		u.inTime = ago < minACK
	}
}

// risk returns whether a request may wait for a response, the last byte moved so long ago.
func (u *turn) risk(s *tcp.Socket, usual Usual, silent time.Duration) RequestState {
	switch {
	case u.of == program || s.Info.PureACKs != u.pureACKs:
		return InFlight
	case u.of == client || u.inTime && silent >= maxACK || silent >= maxUnknown && s.Info.PureACKs <= usual.PureACKs:
		return Idle
	}
	return Undetermined
}
