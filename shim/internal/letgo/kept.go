package letgo

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Kept is a connection, as the latest sample showed it, and how the client has used it lately.
// Its life is cycles: a request, the answer, and the next request.
type Kept struct {
	conn    traffic.Conn
	seen    time.Duration // the latest sample with the connection
	movedAt time.Duration // when the last byte moved

	in, out  uint64 // bytes of the latest cycle
	unclear  bool   // the latest cycle is not certainly one request and its answer
	unequal  bool   // and fewer answers than requests have been sent, as far as segments tell
	overlaps bool   // in the latest cycle more was received while the request waited
	clean    int    // clean cycles in a row
	needed   int    // so many before the connection may be closed

	since    time.Duration // the first sample with the connection
	requests int           // since then, or fewer: samples may show several as one

	client   *client       // of a connection that was closed
	closedAt time.Duration // after this sample
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

// maxLoss is the highest chance that a request is lost when a connection is closed, and roundTrips
// is in how many of them a request that is on its way is lost: as measured, 4 of 72 closings where a
// connection with 4 requests a second was 2 ms away, and 3 to 24 of 30 from 10 to 40 ms away. From
// more than maxRTT away, a pool would lose as many requests as at a lull.
const (
	maxLoss    = 1. / 20
	roundTrips = 4
	maxRTT     = time.Millisecond
)

// isNear reports whether the client is so near that few of its requests are on their way at a time.
func (k *Kept) isNear() bool {
	rate := float64(k.requests) / (k.seen - k.since).Seconds()
	return k.conn.RTT <= maxRTT && rate*roundTrips*k.conn.RTT.Seconds() <= maxLoss
}

// noteEnd notes what a sample shows of a connection that the server has closed. The kernel keeps
// such a connection in FIN_WAIT2 until the client closes it too, and then in TIME_WAIT. It removes
// one on which more data arrives, and resets it; see tcp_timewait_state_process in
// net/ipv4/tcp_minisocks.c.
func (k *Kept) noteEnd(c *traffic.Conn) {
	switch c.State {
	case tcp.TimeWait, tcp.CloseWait, tcp.LastAck, tcp.Closing:
		if k.leaving {
			k.leaving = false
			k.client.left++
			k.client.leaving--
		}
	case tcp.FinWait2:
		k.lingers = true
	case tcp.Close:
		in, out := c.Received-k.conn.Received, c.Sent-k.conn.Sent
		k.saidGoodbye = out > 0 && max(in, out) <= traffic.MaxControlBytes
	}
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

// Inode returns the inode of the server's socket.
func (k *Kept) Inode() uint32 { return k.conn.Inode }

// Cookie returns the kernel's identity of the server's socket.
func (k *Kept) Cookie() uint64 { return k.conn.Cookie }

// update notes what has moved since the sample before. The results are after which pause an answer
// went on that had seemed complete, or 0, and whether a clean cycle has ended. Samples that are far
// apart show neither.
func (k *Kept) update(c *traffic.Conn, now time.Duration) (pause time.Duration, isClean bool) {
	before, movedBefore := k.conn, k.movedAt
	areClose := now-k.seen <= closeSamples
	k.conn = *c
	k.seen = now
	k.movedAt = now - k.idleFor()
	in := c.Received - before.Received
	out := c.Sent - before.Sent
	var waiting uint32 // requests
	if before.Request == traffic.InFlight {
		waiting = 1
	}
	unequal := c.Segments-before.Segments+waiting > c.SentSegments-before.SentSegments
	isNext := before.Request != traffic.InFlight || k.out > 0 // or answered, and the answer not acknowledged then
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
		if k.out > 0 && before.Request == traffic.Idle {
			pause = k.movedAt - movedBefore
			if k.overlaps { // it was another request's answer, which may take as long as any
				pause = longest
			}
		}
	case isNext:
		isClean = k.endCycle()
		k.begin()
		k.unclear = out > 0 && c.Segments-before.Segments > 2
		k.unequal = k.unclear && unequal
	case out > 0 && c.Segments-before.Segments == 1 && c.LastReceived < c.LastSent: // an answer, then the next request
		k.out += out
		isClean = k.endCycle()
		k.begin()
	case out == 0, c.SentSegments-before.SentSegments <= 1 && c.LastSent < c.LastReceived:
		if now-c.LastReceived-movedBefore > maxHeadGap { // a body in parts, or several requests at a time
			k.overlaps = true
			k.doubt()
		}
	default: // an answer, the next request, and perhaps an answer to that
		k.begin()
		k.unclear, k.unequal = true, unequal
	}
	k.in += in
	if in == 0 || c.Request != traffic.InFlight { // else that was the end of the answer before
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
	return k.in <= traffic.MaxControlBytes || k.out <= traffic.MaxControlBytes
}

// answered reports whether the last request seems answered, and was alone. On a connection that has
// shown a clean cycle, a sample that says nothing changes nothing.
func (k *Kept) answered() bool {
	isClear := !k.unclear || k.clean > 0 && !k.unequal
	wasAlone := isClear && k.clean >= k.needed && !k.overlaps && !k.isSmall()
	c := &k.conn
	return wasAlone && c.Request == traffic.Idle && c.State == tcp.Established && !c.Queued
}

// idleFor returns how long no byte had moved in the latest sample.
func (k *Kept) idleFor() time.Duration { return min(k.conn.LastSent, k.conn.LastReceived) }

// IsIdle reports whether the connection, as now is, is still as idle as in the sample: nothing
// has moved, and nothing waits to be read or sent.
func (k *Kept) IsIdle(now *tcp.Socket) bool {
	return now.State == tcp.Established && now.Unread == 0 && now.Info.NotSent == 0 && now.HasInfo &&
		now.Info.Received == k.conn.Received && now.Info.Sent-now.Info.Resent == k.conn.Sent
}
