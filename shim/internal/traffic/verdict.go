package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// draft is a sample that is being taken.
type draft struct {
	Sample
	activity        // without probes that are left out, and without bytes on connections that were shut
	shut     moment // when a byte moved on those last

	wanted int // connections in accept queues that have sent something or are not shown

	lasting      Cause // open connections with a peer that answers: Drained waits
	unsent       bool  // a peer has not acknowledged all bytes
	bytesUnknown bool  // a connection is open whose bytes the source does not show

	oldest *ledger.Conn // of the requests that hold, the one silent longest
	slow   bool         // one that holds is certainly not answered, and silent for slowAfter
	served bool         // of one that holds the program may have read a part
	unread bool         // bytes wait to be read by the program
}

// addConn adds the activity on a connection.
func (y *draft) addConn(c *ledger.Conn, a activity) {
	if c.Shut {
		y.shut = max(y.shut, a.Moved)
		a.Moved = 0
	}
	y.Add(a)
}

// conclude completes the verdict on a sample.
func (t *Tracker) conclude(y *draft, lastOther moment, shutSilence time.Duration) {
	latest := y.activity
	latest.Add(both(t.queuedAt))
	v := &y.Verdict
	y.NoneNewFor = t.silence(max(lastOther, t.queuedAt))
	v.Settled = t.silentSince(latest.Opened) && t.sample.Now >= t.comeBackUntil()
	v.Quiet = v.Settled && t.silentSince(latest.Moved) && t.silence(y.shut) >= shutSilence && y.InFlight == 0
	y.Moved = max(y.Moved, y.shut)
	v.Drained = v.Quiet && y.lasting.Connections == 0 && !y.unsent
	// Clients that never let go are all that remains: bytes move on open connections, and no new
	// connections have come, but for single ones, QuietFor apart, which would not prolong a hold
	// by themselves. A slow request may still be answered.
	newest := max(t.arrivals.crowded, t.queuedAt)
	v.Kept = !v.Quiet && !y.bytesUnknown && t.silence(newest) >= KeptFor*t.cfg.QuietFor &&
		t.silentSince(t.arrivals.latest) && t.silentSince(t.streamed) && y.InUse > 0 && !y.slow
	v.Active = t.recent(max(latest.Opened, latest.Moved, y.shut)) || y.InFlight > 0
	v.NoSockets = v.NoSockets && y.Open == 0 && y.InFlight == 0
	v.Stuck = !y.served && t.sample.Now-t.progressAt > max(stuckAfter, t.cfg.QuietFor)
}

// KeptFor is for how many times QuietFor no new connection has come if clients that never
// let go are all that remains: clients that keep connections through a balancer of the
// transport layer, which moves only new connections.
const KeptFor = 8

// count adds an open connection to the sample.
func (t *Tracker) count(c *ledger.Conn) {
	y := &t.draft
	y.addConn(c, c.Activity)
	isGone := ledger.PeerGone(&c.Socket)
	switch {
	case !c.Accepted:
		t.queued = c.Remote.Addr()
		if c.Unread == 0 {
			y.wanted--
		}
	default:
		t.accepted[c.Local.Port()] = true
		if !c.Before.Accepted && !t.sample.Baseline {
			t.progressAt = t.sample.Now
		}
	}
	if t.recent(c.Moved) {
		y.InUse++
		if isStream(c) {
			t.streamed = t.sample.Now
		}
	}
	if c.State == tcp.Established {
		y.Open++
	}
	switch {
	case isGone:
		y.LeftOut.Gone++
	case c.State == tcp.Established:
		y.lasting.Connections++
		y.lasting.Peer = c.Remote.Addr()
	}
	if c.New && ledger.ReceivedNothing(&c.Socket) {
		y.LeftOut.Bare++
	}
	y.unsent = y.unsent || c.Unsent > 0 && !isGone
	y.bytesUnknown = y.bytesUnknown || c.Accepted && !c.HasInfo && ledger.IsOpen(&c.Socket)
}

// isStream reports whether the program has sent for a second or more without a byte from the peer: a
// response that streams, or a large one. A client that keeps its connection does not prolong such a
// response, and the response ends by itself.
func isStream(c *ledger.Conn) bool { return c.SendsSince != 0 && c.Moved-c.SendsSince >= time.Second }

// slowAfter is the silence of a request that outlasts a search for a lull.
const slowAfter = time.Second

// countRequest adds the request on a connection to the sample. Silence counts from the
// trigger, so that no slow request is cut for what it did before.
func (t *Tracker) countRequest(c *ledger.Conn) {
	y := &t.draft
	state := c.Request
	y.unread = y.unread || c.Unread > 0
	unheard := c.Shut && c.Unread > 0 && t.silence(c.Moved) >= slowAfter // the server reads no more
	givenUp := unheard || t.silence(c.Moved) >= t.cfg.MaxSilence
	switch {
	case state == ledger.Idle:
		if isStream(c) && t.sample.Now-c.Moved < time.Second || c.Notified && t.recent(c.Moved) {
			y.Streams++
		}
	case givenUp:
		y.LeftOut.GivenUp++
	default:
		if y.oldest == nil || c.Moved < y.oldest.Moved {
			y.oldest = c
		}
		y.InFlight++
		if c.Unread == 0 || c.PartlyRead() {
			y.served = true
		}
		if state == ledger.InFlight && t.silence(c.WaitsSince) >= slowAfter {
			y.slow = true
		}
	}
	if !givenUp && t.atRisk(&c.Socket, state) {
		y.AtRisk++
	}
}

// requestDelay is how long after its handshake a client may take to send a request.
const requestDelay = 100 * time.Millisecond

// atRisk reports whether a signal now would cut a request on a connection, by the state of the
// last request. In contrast to a request in flight, a response that was sent and not
// acknowledged is not at risk, since the kernel delivers the response after the program's
// end. A client that has just connected is about to send a request.
func (t *Tracker) atRisk(s *tcp.Socket, state ledger.RequestState) bool {
	switch {
	case !s.HasInfo || ledger.PeerGone(s):
		return false
	case s.Unread > 0 || s.Info.NotSent > 0 && ledger.IsOpen(s):
		return true
	case ledger.ReceivedNothing(s):
		return ledger.IsOpen(s) && s.Info.LastReceived < requestDelay
	case s.Unsent > 0:
		state = ledger.LastRequest(s, t.sample.Usual)
	}
	return state == ledger.InFlight
}
