package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// fold is the judgment of a sample, as far as the sample has been read.
type fold struct {
	*Tracker
	Sample
	counted activity // without probes that are left out

	listeners []*ledger.Other
	wanted    int // connections in accept queues that have sent something or are not shown

	lasting      Cause // open connections with a peer that answers: Drained waits
	unsent       bool  // a peer has not acknowledged all bytes
	bytesUnknown bool  // a connection is open whose bytes the source does not show

	oldest *ledger.Conn // of the requests that hold, the one silent longest
	slow   bool         // one that holds is certainly not answered, and silent for slowAfter
	served bool         // of one that holds the program may have read a part
	unread bool         // bytes wait to be read by the program
}

// stuckAfter is how long connections may wait to be accepted, or requests to be read,
// without any progress of the program.
const stuckAfter = 10 * time.Second

// KeptFor is for how many times QuietFor no new connection has come if clients that never
// let go are all that remains: clients that keep connections through a balancer of the
// transport layer, which moves only new connections.
const KeptFor = 8

// conclude completes the verdict.
func (f *fold) conclude(lastOther moment, shutSilence time.Duration) {
	latest := f.counted
	latest.add(both(f.queuedAt))
	v := &f.Verdict
	f.NoneNewFor = f.silence(max(lastOther, f.queuedAt))
	v.Settled = f.silentSince(latest.opened) && f.now >= f.comeBackUntil
	v.Quiet = v.Settled && f.silentSince(latest.moved) && f.silence(latest.shut) >= shutSilence && f.InFlight == 0
	v.Drained = v.Quiet && f.lasting.Connections == 0 && !f.unsent
	// Clients that never let go are all that remains: bytes move on open connections, and no new
	// connections have come, but for single ones, QuietFor apart, which would not prolong a hold
	// by themselves. A slow request may still be answered.
	v.Kept = !v.Quiet && !f.bytesUnknown && f.silence(max(f.crowded, f.queuedAt)) >= KeptFor*f.cfg.QuietFor &&
		f.silentSince(f.newest) && f.silentSince(f.streamed) && f.InUse > 0 && !f.slow
	v.Active = f.recent(max(latest.opened, latest.moved, latest.shut)) || f.InFlight > 0
	v.NoSockets = len(f.listeners) == 0 && f.Open == 0 && f.InFlight == 0
	v.Stuck = !f.served && f.now-f.progressAt > max(stuckAfter, f.cfg.QuietFor)
}

// count adds an open connection.
func (f *fold) count(c *ledger.Conn) {
	f.counted.add(activityOf(c, c.Moved))
	isGone := c.PeerGone()
	if c.Accepted {
		f.acceptedOn[c.Local.Port()] = true
		if !c.Before.Accepted {
			f.progressAt = f.now
		}
	} else {
		f.queued = c.Remote.Addr()
		if c.Unread == 0 {
			f.wanted--
		}
	}
	if f.recent(c.Moved) {
		f.InUse++
		if c.SendsSince != 0 && c.Moved-c.SendsSince >= streamsAfter {
			f.streamed = f.now
		}
	}
	if isGone {
		f.LeftOut.Gone++
	}
	if c.State == tcp.Established {
		f.Open++
		if !isGone {
			f.lasting.Connections++
			f.lasting.Peer = c.Remote.Addr()
		}
	}
	if c.New && c.Opened == 0 {
		f.LeftOut.Bare++
	}
	f.unsent = f.unsent || c.Unsent > 0 && !isGone
	f.bytesUnknown = f.bytesUnknown || c.Accepted && !c.HasInfo && c.IsOpen()
}

// streamsAfter is for how long the program has sent without a byte from the peer in a response that streams,
// or a large one. A client that keeps its connection does not prolong such a response, and the
// response ends by itself.
const streamsAfter = time.Second

// slowAfter is the silence of a request that outlasts a search for a lull.
const slowAfter = time.Second

// countRequest adds the request on a connection. Silence counts from the
// trigger, so that no slow request is cut for what it did before.
func (f *fold) countRequest(c *ledger.Conn) {
	state := c.Request
	f.unread = f.unread || c.Unread > 0
	unheard := c.Shut && c.Unread > 0 && f.silence(c.Moved) >= slowAfter // the server reads no more
	givenUp := unheard || f.silence(c.Moved) >= f.cfg.MaxSilence
	switch {
	case state == ledger.Idle:
		if c.Streams(f.now-c.Moved) || c.Notified && f.recent(c.Moved) {
			f.Streams++
			f.Longest = max(f.Longest, c.Info.LastReceived)
		}
	case givenUp:
		f.LeftOut.GivenUp++
	default:
		if f.oldest == nil || c.Moved < f.oldest.Moved {
			f.oldest = c
		}
		f.InFlight++
		f.Longest = max(f.Longest, c.Info.LastReceived)
		if c.Unread == 0 || c.PartlyRead() {
			f.served = true
		}
		if state == ledger.InFlight && f.silence(c.WaitsSince) >= slowAfter {
			f.slow = true
		}
	}
	if !givenUp && atRisk(c) {
		f.AtRisk++
	}
}

// requestDelay is how long after its handshake a client may take to send a request.
const requestDelay = 100 * time.Millisecond

// atRisk reports whether a signal now would cut a request on a connection. In contrast to a request in
// flight, a response that was sent and not acknowledged is not at risk, since the kernel delivers the response
// after the program's end. A client that has just connected is about to send a request.
func atRisk(c *ledger.Conn) bool {
	switch s := &c.Socket; {
	case !s.HasInfo || s.PeerGone():
		return false
	case s.Unread > 0 || s.Info.NotSent > 0 && s.IsOpen():
		return true
	case ledger.ReceivedNothing(s):
		return s.IsOpen() && s.Info.LastReceived < requestDelay
	}
	return c.AtServer == ledger.InFlight
}
