package traffic

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// closings is what became of the connections that were closed.
type closings struct {
	closed   int
	cameBack int
	peers    map[netip.Addr]*peerClosings
	leaving  map[uint64]*leaving // by cookie: the connections that clients have not closed in turn
	pauses   map[uint16]moment   // by port: the longest pause after which an answer that had seemed complete went on
	watched  moment              // since when connections are watched; zero: they are not
}

// watchFor is how long connections are watched, in frequent samples, before the first is closed.
// What looks like one request and its answer in two samples far apart may be several requests.
const watchFor = time.Second

// updateWatch begins to watch when connections may be closed soon, and ends it.
func (t *Tracker) updateWatch(opened moment) {
	switch {
	case t.current.talking == 0, t.silence(opened) < t.cfg.QuietFor-watchFor:
		t.closings.watched = 0
	case t.closings.watched == 0:
		t.closings.watched = t.now
	}
}

// peerClosings counts the connections of a peer that were closed.
type peerClosings struct {
	away    int // for which the peer has not connected again
	leaving int // that the client has not closed in turn
	left    int // that the client has closed in turn
	reset   int // whose client seems to have used the connection once more
}

// leaving is a closed connection whose client has not closed it in turn.
type leaving struct {
	peer *peerClosings
	seen bool // in the present sample
}

// noteNew notes a new connection.
func (k *closings) noteNew(peer netip.Addr) {
	if p := k.peers[peer]; p != nil && p.away > 0 {
		p.away--
		k.cameBack++
	}
}

// noteState notes what has become of a socket. The kernel keeps a connection that the server
// has closed in FIN_WAIT2 until the client closes it too, and then in TIME_WAIT. It removes one
// on which more data arrives, and resets it; see tcp_timewait_state_process in
// net/ipv4/tcp_minisocks.c.
func (k *closings) noteState(s *tcp.Socket) {
	l := k.leaving[s.Cookie]
	if l == nil {
		return
	}
	switch s.State {
	case tcp.TimeWait, tcp.CloseWait, tcp.LastAck, tcp.Closing:
		l.peer.leaving--
		l.peer.left++
		delete(k.leaving, s.Cookie)
	default:
		l.seen = true
	}
}

// noteMissing notes the closed connections that are not in a complete sample. Clients of TLS and
// HTTP/2 send a few more bytes when they close, which looks like a request.
func (k *closings) noteMissing() {
	for cookie, l := range k.leaving {
		if !l.seen {
			l.peer.leaving--
			l.peer.reset++
			delete(k.leaving, cookie)
		}
		l.seen = false
	}
}

// notePause notes that an answer on a connection has gone on after a pause. Beside other
// requests it was another one's answer, which may take as long as any.
func (t *Tracker) notePause(c *conn, pause moment) {
	pauses := &t.closings.pauses
	if *pauses == nil {
		*pauses = map[uint16]moment{}
	}
	if c.usage.overlaps {
		pause = t.cfg.MaxSilence
	}
	(*pauses)[c.port] = max((*pauses)[c.port], pause)
}

// usage is what clients have done with a connection during the hold.
type usage struct {
	reused   bool   // a request has come after an answer, while connections were watched
	unclear  bool   // what was received and sent last is not certainly one request and all of its answer
	overlaps bool   // more was received while a request waited: a body in parts, or several requests at a time
	small    bool   // what began like a request had a few bytes
	in, out  uint64 // bytes of the last request and its answer
	segments uint32 // sent
	closed   bool   // by NoteClosed
}

// update notes what has moved since the connection was as before, when connections were watched
// or not. It reports whether an answer that had seemed complete went on.
func (u *usage) update(before, c *conn, info *tcp.Info, watched bool) (wentOn bool) {
	answers := info.SentSegments - u.segments
	u.segments = info.SentSegments
	if before.seen == 0 || before.sent == 0 {
		return false
	}
	in := c.received - before.received
	out := c.sent - before.sent
	u.reused = watched && (u.reused || in > 0)
	switch {
	case in == 0:
		wentOn = out > 0 && u.out > 0 && before.request == Idle
		u.unclear = u.unclear || wentOn
	case before.request != InFlight, u.out > 0: // or answered, and the answer not acknowledged then
		u.in, u.out = 0, 0
		u.unclear = false
		u.small = u.small || in <= maxControlBytes
	case out == 0, answers <= 1 && info.LastSent < info.LastReceived:
		u.overlaps = true
	default: // an answer, the next request, and perhaps an answer to that
		u.unclear = true
	}
	u.in += in
	u.out += out
	return wentOn && out > maxControlBytes
}

// answered reports whether the last request seems answered, and was alone. A few bytes may be a
// WINDOW_UPDATE or a PING of HTTP/2, or 100 Continue, beside requests that wait.
func (u *usage) answered() bool {
	return u.reused && !u.unclear && !u.overlaps && !u.small && u.out > maxControlBytes
}

// minIdle is how long a connection has to be idle before it is closed: several jiffies, and
// longer than most answers that are written in parts pause. Where longer pauses have been seen
// on the port, twice the longest: another answer may pause too, or, as in HTTP/2, an answer to
// an earlier request be still to come.
const minIdle = 20 * time.Millisecond

// Closable is a kept connection that was idle in the latest sample.
type Closable struct {
	Inode  uint32
	Cookie uint64

	conn           *conn
	received, sent uint64 // as the kernel counts
	idleFor        time.Duration
}

// IsIdle reports whether the connection, as now is, is still as idle as in the sample: nothing
// has moved, and nothing waits to be read, sent or acknowledged.
func (k *Closable) IsIdle(now *tcp.Socket) bool {
	return now.State == tcp.Established && now.Unread == 0 && now.Unsent == 0 && now.HasInfo &&
		now.Info.Received == k.received && now.Info.Sent == k.sent
}

// noteKept notes a connection that clients keep, by the state of its last request.
func (t *Tracker) noteKept(c *conn, s *tcp.Socket, state RequestState) {
	if c.usage.closed && mayReceive(s) {
		t.current.keptOpen++
	}
	if !t.cfg.CloseIdle || c.usage.closed || s.State != tcp.Established || t.leavesOut(c) {
		return
	}
	if t.recent(c.moved) {
		t.current.talking++
	}
	idleFor := min(s.Info.LastSent, s.Info.LastReceived)
	candidate := Closable{s.Inode, s.Cookie, c, s.Info.Received, s.Info.Sent, idleFor}
	if state == Idle && c.usage.answered() && idleFor >= max(minIdle, 2*t.closings.pauses[c.port]) && candidate.IsIdle(s) {
		t.current.closable = append(t.current.closable, candidate)
	}
}

// Closable returns the kept connections that may be closed after the latest sample, since
// nothing new has come for QuietFor and clients go on using old connections: those that are
// idle after at least one answer, and have been used again while they were watched. The first
// are those whose idle time is the median, since a client's next request goes to the connection
// that has been idle the longest, or the shortest. watched reports whether samples should be
// frequent. The slice is valid until the next sample.
func (t *Tracker) Closable() (idle []Closable, watched bool) {
	if t.closings.watched == 0 {
		return nil, false
	}
	if !t.verdict.Settled || t.now-t.closings.watched < watchFor {
		return nil, true
	}
	idle = t.current.closable
	slices.SortFunc(idle, func(a, b Closable) int { return cmp.Compare(a.idleFor, b.idleFor) })
	ordered := make([]Closable, 0, len(idle))
	for low, high := (len(idle)-1)/2, (len(idle)-1)/2+1; len(ordered) < len(idle); low, high = low-1, high+1 {
		if low >= 0 {
			ordered = append(ordered, idle[low])
		}
		if high < len(idle) {
			ordered = append(ordered, idle[high])
		}
	}
	return ordered, true
}

// MayClose reports whether a connection may be closed after the latest sample. Of a server's
// connections, one more may be open than the server has closed in turn: a server may keep
// connections whose clients seem to have left, and answer no more. Of a peer's connections, one
// more may be open than the clients have closed in turn: some clients notice the end of a
// connection when they send the next request, which is lost.
func (t *Tracker) MayClose(k *Closable) bool {
	p := t.closings.peers[k.conn.peer]
	return t.current.keptOpen <= t.closings.closed-t.current.keptOpen &&
		(p == nil || p.leaving <= p.left && p.reset <= p.left)
}

// NoteClosed notes that a connection has been closed for reading. That is done once.
func (t *Tracker) NoteClosed(k *Closable) {
	k.conn.usage.closed = true
	c := &t.closings
	c.closed++
	t.current.keptOpen++
	if c.peers == nil {
		c.peers = map[netip.Addr]*peerClosings{}
		c.leaving = map[uint64]*leaving{}
	}
	p := c.peers[k.conn.peer]
	if p == nil {
		p = &peerClosings{}
		c.peers[k.conn.peer] = p
	}
	p.away++
	p.leaving++
	c.leaving[k.Cookie] = &leaving{peer: p}
}

// AwaitsClients reports whether samples should have sockets in TIME_WAIT: those of clients that
// have closed connections in turn.
func (t *Tracker) AwaitsClients() bool { return len(t.closings.leaving) > 0 }
