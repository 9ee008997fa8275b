package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// draft is a sample that is being taken.
type draft struct {
	Sample
	activity        // without probes that are left out, and without bytes on connections that were shut
	shut     moment // when a byte moved on those last

	lastOther moment // for LastOther

	filled []Cause // the accept queues that are not empty
	wanted int     // connections in these queues that have sent something or are not shown

	lasting      Cause // open connections with a peer that answers: Drained waits
	unsent       bool  // a peer has not acknowledged all bytes
	bytesUnknown bool  // a connection is open whose bytes the source does not show

	oldest *conn // of the requests that hold, the one silent longest
	slow   bool  // one that holds is certainly not answered, and silent for slowAfter
	served bool  // of one that holds the program may have read a part
	unread bool  // bytes wait to be read by the program
}

// addConn adds the activity of a connection.
func (y *draft) addConn(c *conn) {
	counted := c.activity
	if c.shut {
		y.shut = max(y.shut, c.moved)
		counted.moved = 0
	}
	y.add(counted)
}

// conclude completes the verdict on a sample.
func (t *Tracker) conclude(y *draft) {
	latest := y.activity
	latest.add(activity{t.queuedAt, t.queuedAt})
	v := &y.Verdict
	y.NoneNewFor = t.silence(max(y.lastOther, t.queuedAt))
	v.Settled = t.silentSince(latest.opened)
	v.Quiet = v.Settled && t.silentSince(latest.moved) && t.silence(y.shut) >= t.ShutSilence && y.InFlight == 0
	y.moved = max(y.moved, y.shut)
	v.Drained = v.Quiet && y.lasting.Connections == 0 && !y.unsent
	// Clients that never let go are all that remains: bytes move on open connections, and no new
	// connections have come, but for single ones, QuietFor apart, which would not prolong a hold
	// by themselves. A slow request may still be answered.
	newest := max(t.arrivals.crowded, t.queuedAt)
	v.Kept = !v.Quiet && !y.bytesUnknown && t.silence(newest) >= KeptFor*t.cfg.QuietFor &&
		t.silentSince(t.arrivals.latest) && y.InUse > 0 && !y.slow
	v.Active = t.recent(max(latest.last(), y.shut)) || y.InFlight > 0
	v.NoSockets = v.NoSockets && y.Open == 0 && y.InFlight == 0
	v.Stuck = !y.served && t.now-t.progressAt > max(stuckAfter, t.cfg.QuietFor)
}

// KeptFor is for how many times QuietFor no new connection has come if clients that never
// let go are all that remains: clients that keep connections through a balancer of the
// transport layer, which moves only new connections.
const KeptFor = 8

// count adds an open connection to the sample.
func (t *Tracker) count(c *conn, s *tcp.Socket) {
	y := &t.current
	y.addConn(c)
	if t.recent(c.moved) {
		y.InUse++
	}
	if s.State == tcp.Established {
		y.Open++
	}
	switch {
	case peerGone(s):
		y.LeftOut.Gone++
	case s.State == tcp.Established:
		y.lasting.Connections++
		y.lasting.Peer = c.peer
	}
	if c.isNew && receivedNothing(s) {
		y.LeftOut.Bare++
	}
	y.unsent = y.unsent || s.Unsent > 0 && !peerGone(s)
	y.bytesUnknown = y.bytesUnknown || c.accepted && !s.HasInfo && mayReceive(s)
}

// maxTie is how long a tie in ping-pong mode holds after the last byte, or for twice QuietFor.
// Such a request has probably been answered. After 2 s slow requests were cut, and readiness
// probes that come through a proxy may make a new tie each 10 s.
const maxTie = 9 * time.Second

// slowAfter is the silence of a request that outlasts a search for a lull.
const slowAfter = time.Second

// countRequest adds the request on a connection to the sample. Silence counts from the
// trigger, lest a slow request be cut for what it did before. A tie is given no such time. The
// result is the state of the request.
func (t *Tracker) countRequest(c *conn, s *tcp.Socket) (state RequestState) {
	y := &t.current
	state = c.judge(s, t.usual)
	tieEnds := c.since + min(max(maxTie, 2*t.cfg.QuietFor), t.cfg.MaxSilence)
	if state == Tie && s.Info.PingPong && t.now >= tieEnds {
		state = Idle
		c.request = Idle
	}
	c.waited = c.waited || state == InFlight && t.silentSince(c.moved)
	y.unread = y.unread || s.Unread > 0
	unheard := c.shut && s.Unread > 0 && t.silence(c.moved) >= slowAfter // the server reads no more
	givenUp := unheard || t.silence(c.moved) >= t.cfg.MaxSilence
	switch {
	case state == Idle:
		// The program has sent for a second, and within the last second, without a byte from the peer.
		if c.sendsSince != 0 && c.moved-c.sendsSince >= time.Second && t.now-c.moved < time.Second {
			y.Streams++
		}
	case givenUp:
		y.LeftOut.GivenUp++
	default:
		if y.oldest == nil || c.moved < y.oldest.moved {
			y.oldest = c
		}
		y.InFlight++
		if s.Unread == 0 || c.partlyRead(s) {
			y.served = true
		}
		if state == InFlight && t.silence(c.since) >= slowAfter {
			y.slow = true
		}
	}
	if !givenUp && t.atRisk(s, state) {
		y.AtRisk++
	}
	return state
}

// requestDelay is how long after its handshake a client may take to send a request.
const requestDelay = 100 * time.Millisecond

// atRisk reports whether a signal now would cut a request on a connection, by the state of the
// last request. In contrast to a request in flight, a response that was sent and not
// acknowledged is not at risk, since the kernel delivers the response after the program's
// end. A client that has just connected is about to send a request.
func (t *Tracker) atRisk(s *tcp.Socket, state RequestState) bool {
	switch {
	case !s.HasInfo || peerGone(s):
		return false
	case s.Unread > 0 || s.Info.NotSent > 0 && mayReceive(s):
		return true
	case receivedNothing(s):
		return mayReceive(s) && s.Info.LastReceived < requestDelay
	case s.Unsent > 0:
		state = LastRequest(s, t.usual)
	}
	return state == InFlight
}
