package letgo

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Kept is a connection, as the latest sample showed it, and how the client has used it lately.
// Its life is cycles: a request, the answer, and the next request.
type Kept struct {
	*ledger.Conn
	seen    ledger.Moment // the latest sample with the connection, or with what the kernel keeps of it
	isOpen  bool          // as the latest of these samples showed it
	movedAt ledger.Moment // when the last byte moved
	request ledger.RequestState

	in, out  uint64 // bytes of the latest cycle
	unclear  bool   // the latest cycle is not certainly one request and its answer
	unequal  bool   // and fewer answers than requests have been sent, as far as segments tell
	overlaps bool   // in the latest cycle more was received while the request waited
	clean    int    // clean cycles in a row
	needed   int    // so many before the connection may be closed

	since    ledger.Moment // the first sample with the connection
	requests int           // since then, or fewer: samples may show several as one

	client   *client       // of a connection that was closed
	closedAt ledger.Moment // after this sample
	leaving  bool          // was closed, and the client has not closed it in turn
	lingers  bool          // a sample has shown that

	saidGoodbye bool // the server has sent a few more bytes before it closed: an alert of TLS
}

// severalCycles is how many clean cycles in a row tell that requests come one at a time on a
// connection that had looked otherwise: several at a time, or PINGs and WINDOW_UPDATEs of HTTP/2.
const severalCycles = 4

// closeSamples is how far apart two samples may be that tell what has happened in between.
const closeSamples = 200 * time.Millisecond

// maxHeadGap is how long after the head of a request its body may come: the kernel of the
// client may wait for the ACK of the head, which is delayed by 40 ms.
const maxHeadGap = 60 * time.Millisecond

// longest is longer than any pause.
const longest = time.Hour

// maxLoss is the highest chance that a request is lost when a connection is closed: one that is
// sent within roundTrips round trips of the closing is lost. As measured, 4 of 72 closings lost one
// where a connection with 4 requests a second was 2 ms away, and 3 to 24 of 30 from 10 to 40 ms away.
// From more than maxRTT away, a pool would lose as many requests as at a lull.
const (
	maxLoss    = 1. / 20
	roundTrips = 4
	maxRTT     = time.Millisecond
)

// isNear reports whether the client is so near that few of its requests are on their way at a time.
func (k *Kept) isNear() bool {
	rate := float64(k.requests) / (k.seen - k.since).Seconds()
	rtt := k.Info.RTT // the shortest lately
	return rtt <= maxRTT && rate*roundTrips*rtt.Seconds() <= maxLoss
}

// noteEnd notes what a sample shows of a connection that the server has closed. The kernel keeps
// such a connection in FIN_WAIT2 until the client closes it too, and then in TIME_WAIT. It removes
// one on which more data arrives, and resets it; see tcp_timewait_state_process in
// net/ipv4/tcp_minisocks.c.
func (k *Kept) noteEnd(state tcp.State) {
	switch state {
	case tcp.TimeWait, tcp.CloseWait, tcp.LastAck, tcp.Closing:
		if k.leaving {
			k.leaving = false
			k.client.left++
		}
	case tcp.FinWait2:
		k.lingers = true
	}
}

// noteClosed notes the event of the connection's end, with its last counters.
func (k *Kept) noteClosed(c *ledger.Conn) {
	before := &c.Was.Info
	in, out := c.Received-before.Received, c.Sent-(before.Sent-before.Resent)
	k.saidGoodbye = out > 0 && max(in, out) <= ledger.MaxControlBytes
}

// noteMissing notes that a complete sample has not shown the connection: a request has come after
// the end, or a client of TLS has said goodbye as soon as the server did.
func (k *Kept) noteMissing() {
	switch {
	case !k.leaving:
	case k.saidGoodbye && !k.lingers:
		k.client.left++
	default:
		k.client.reset++
	}
}

// requestOf returns the state of the last request on a connection. A client that has read the
// answer may delay the ACK by 40 ms.
func requestOf(c *ledger.Conn) ledger.RequestState {
	switch {
	case !c.HasInfo:
		return ledger.Tie
	case c.Unread == 0 && c.Unsent > 0 && c.Info.NotSent == 0 && c.Info.LastSent <= c.Info.LastReceived:
		return ledger.Idle
	}
	return c.Request
}

// note notes how a sample shows the connection, which is open.
func (k *Kept) note(c *ledger.Conn, now ledger.Moment) {
	k.Conn = c
	k.isOpen = true
	k.movedAt = now - k.idleFor()
	k.request = requestOf(c)
}

// update notes what has moved since the sample before. The results are after which pause an answer
// went on that had seemed complete, or 0, and whether a clean cycle has ended. Samples that are far
// apart show neither.
func (k *Kept) update(c *ledger.Conn, now ledger.Moment) (pause time.Duration, isClean bool) {
	last, movedBefore := k.request, k.movedAt
	k.note(c, now)
	before := &c.Before
	areClose := now-before.Seen <= closeSamples
	in := c.Received - before.Received
	out := c.Sent - before.Sent
	segments := c.Info.Segments - before.Segments
	sentSegments := c.Info.SentSegments - before.SentSegments
	var waiting uint32 // requests
	if last == ledger.InFlight {
		waiting = 1
	}
	unequal := segments+waiting > sentSegments
	isNext := last != ledger.InFlight || k.out > 0 // or answered, and the answer not acknowledged then
	if in > 0 {
		k.requests++
	}
	switch {
	case in == 0 && out == 0:
		return 0, false
	case !areClose:
		k.begin()
		k.unclear, k.unequal = true, unequal
	case in == 0:
		if k.out > 0 && last == ledger.Idle {
			pause = k.movedAt - movedBefore
			if k.overlaps { // it was another request's answer, which may take as long as any
				pause = longest
			}
		}
	case isNext:
		isClean = k.endCycle()
		k.begin()
		k.unclear = out > 0 && segments > 2
		k.unequal = k.unclear && unequal
	case out > 0 && segments == 1 && c.Info.LastReceived < c.Info.LastSent: // an answer, then the next request
		k.out += out
		isClean = k.endCycle()
		k.begin()
	case out == 0, sentSegments <= 1 && c.Info.LastSent < c.Info.LastReceived:
		if now-c.Info.LastReceived-movedBefore > maxHeadGap { // a body in parts, or several requests at a time
			k.overlaps = true
			k.doubt()
		}
	default: // an answer, the next request, and perhaps an answer to that
		k.begin()
		k.unclear, k.unequal = true, unequal
	}
	k.in += in
	if in == 0 || k.request != ledger.InFlight { // else that was the end of the answer before
		k.out += out
	}
	return pause, isClean
}

// begin begins a cycle.
func (k *Kept) begin() {
	k.in, k.out = 0, 0
	k.unclear, k.unequal, k.overlaps = false, false, false
}

// endCycle notes that the next request has come, and reports whether the cycle was clean. What is
// not clear says nothing.
func (k *Kept) endCycle() (isClean bool) {
	switch {
	case k.unclear || k.overlaps || k.out == 0:
		return false
	case k.isSmall():
		k.doubt()
		return false
	}
	k.clean++
	return true
}

// doubt notes that requests may not come one at a time.
func (k *Kept) doubt() { k.clean, k.needed = 0, severalCycles }

// isSmall reports whether the latest cycle has too few bytes for a request and its answer: it may
// be a WINDOW_UPDATE or a PING of HTTP/2, or 100 Continue, beside requests that wait.
func (k *Kept) isSmall() bool {
	return k.in <= ledger.MaxControlBytes || k.out <= ledger.MaxControlBytes
}

// answered reports whether the last request seems answered, and was alone. On a connection that has
// shown a clean cycle, a sample that says nothing changes nothing.
func (k *Kept) answered() bool {
	isClear := !k.unclear || k.clean > 0 && !k.unequal
	wasAlone := isClear && k.clean >= k.needed && !k.overlaps && !k.isSmall()
	isQueued := k.Unread > 0 || k.Info.NotSent > 0
	return wasAlone && k.request == ledger.Idle && k.State == tcp.Established && !isQueued
}

// idleFor returns how long no byte had moved in the latest sample.
func (k *Kept) idleFor() time.Duration { return min(k.Info.LastSent, k.Info.LastReceived) }

// IsIdle reports whether the connection, as now is, is still as idle as in the sample: nothing
// has moved, and nothing waits to be read or sent.
func (k *Kept) IsIdle(now *tcp.Socket) bool {
	return now.State == tcp.Established && now.Unread == 0 && now.Info.NotSent == 0 && now.HasInfo &&
		now.Info.Received == k.Received && now.Info.Sent-now.Info.Resent == k.Sent
}
