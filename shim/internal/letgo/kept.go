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
	server   *Server
	from     *client
	requests int           // since the first sample, or fewer: samples may show several as one
	since    ledger.Moment // that sample

	in, out uint64 // bytes of the latest cycle
	cycle   cycle
	clean   int // clean cycles in a row, less those needed before the connection may be closed

	answer uint64        // bytes sent since the last request
	pause  time.Duration // the longest in an answer, an eighth less for each without

	parting parting
}

// asked reports whether the client was asked to choose again.
func (k *Kept) asked() bool { return k.Shut || k.Notified }

// cycle is what samples have shown of the latest cycle.
type cycle uint8

const (
	several cycle = iota // fewer answers than requests, as far as segments tell, or more received while one waited
	unclear              // perhaps several
	single               // one request and its answer
)

// parting is how far the client of a connection that was closed has gone.
type parting uint8

const (
	stays   parting = iota // has not closed the connection in turn
	lingers                // a sample has shown that
	left
)

// severalCycles is how many clean cycles in a row tell that requests come one at a time on a
// connection that had looked otherwise: several at a time, or PINGs and WINDOW_UPDATEs of HTTP/2.
const severalCycles = 4

// closeSamples is how far apart two samples may be that tell what has happened in between.
const closeSamples = 200 * time.Millisecond

// maxHeadGap is how long after the head of a request its body may come: the kernel of the
// client may wait for the ACK of the head, which is delayed by 40 ms.
const maxHeadGap = 60 * time.Millisecond

// evidence is what a sample shows of whether requests come one at a time.
type evidence uint8

const (
	nothing evidence = iota
	clean            // a cycle has ended, clean
	goesOn           // an answer that had seemed complete
	doubt
)

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
	rate := float64(k.requests) / (k.Seen - k.since).Seconds()
	rtt := k.Info.RTT // the shortest lately
	return rtt <= maxRTT && rate*roundTrips*rtt.Seconds() <= maxLoss
}

// isLeaving reports whether the client has not closed in turn a connection that was closed.
func (k *Kept) isLeaving() bool { return k.Shut && k.parting != left }

// noteEnd notes what a sample shows of a connection that the server has closed. The kernel keeps
// such a connection in FIN_WAIT2 until the client closes it too, and then in TIME_WAIT. It removes
// one on which more data arrives, and resets it; see tcp_timewait_state_process in
// net/ipv4/tcp_minisocks.c.
func (k *Kept) noteEnd(state tcp.State) {
	switch {
	case !k.isLeaving():
	case state == tcp.FinWait2:
		k.parting = lingers
	case state == tcp.TimeWait, state == tcp.CloseWait, state == tcp.LastAck, state == tcp.Closing:
		k.parting = left
		k.from.left++
		k.from.stay--
	}
}

// noteMissing notes that a complete sample has not shown the connection, and whether our kernel has
// reset connections lately. If so, a request has come after the end, or a client of TLS has said
// goodbye as soon as the server did. If not, the client has reset the connection, as its kernel does
// if it has not read the goodbye of the server.
func (k *Kept) noteMissing(isReset bool) {
	if !k.isLeaving() {
		return
	}
	k.from.stay--
	if !isReset || k.saidGoodbye() && k.parting == stays {
		k.from.left++
	} else {
		k.from.reset++
	}
}

// saidGoodbye reports whether the server has sent a few more bytes before it closed the connection:
// an alert of TLS.
func (k *Kept) saidGoodbye() bool {
	return k.Fate == ledger.Closed && k.Out.Bytes > 0 && max(k.In.Bytes, k.Out.Bytes) <= ledger.MaxControlBytes
}

// isUniform reports whether all requests in the life of the connection had as many bytes as the latest, and
// they and their answers the same numbers of segments: none was a part of another, and none waits.
func (k *Kept) isUniform() bool {
	n := k.Received / max(k.in, 1)
	return n >= uniformCycles && k.Received%k.in == 0 && k.Info.Segments%uint32(n)+k.Info.SentSegments%uint32(n) == 0
}

// isControl reports whether so many bytes may be WINDOW_UPDATEs of HTTP/2, and a PING.
func isControl(n uint64) bool { return n <= 2*ledger.MaxControlBytes && (n%13 == 0 || n%13 == 4) }

// minRefresh is for how many bytes a client sends WINDOW_UPDATE at least: Go's net/http.
const minRefresh = 4 << 10

// notePause notes how long answers pause. What is sent after a silence is the rest of an answer, unless a
// request has come: control frames follow what is sent, and may come before an answer. A
// request that comes while another waits is that of a client that waits for no answer: the server may have
// sent several.
func (k *Kept) notePause(last ledger.RequestState) {
	in, out := k.In.Bytes, k.Out.Bytes
	switch {
	case in == 0, max(out, k.answer) >= minRefresh && isControl(in) && k.Info.LastReceived <= k.Info.LastSent:
		if !isControl(k.answer) && !isControl(out) {
			k.pause = max(k.pause, k.Moved-k.Before.Moved)
		}
		k.answer += out
		return
	case last == ledger.InFlight && out == 0 && in > ledger.MaxControlBytes:
		k.pause = 0
	default:
		k.pause -= k.pause / 8
	}
	k.answer = 0
	if k.AtServer != ledger.InFlight {
		k.answer = out
	}
}

// update notes what has moved since the sample before, and returns what that shows, and for how long
// nothing had moved. Samples that are far apart show nothing.
func (k *Kept) update(now ledger.Moment) (shown evidence, idle time.Duration) {
	before := &k.Before
	last := before.AtServer
	k.notePause(last)
	in, segments := k.In.Bytes, k.In.Segments
	out, sentSegments := k.Out.Bytes, k.Out.Segments
	mixed := unclear
	if segments > sentSegments || segments == sentSegments && last == ledger.InFlight {
		mixed = several
	}
	sent := max(k.Info.SentSegments, 1)
	usual := max((k.Info.Segments+sent/2)/sent, 1) // of a request, if each answer has one
	isOne := segments <= usual
	isLast := isOne && k.Info.LastReceived < k.Info.LastSent // a request came after what was sent
	if in > 0 {
		k.requests++
	}
	switch {
	case in == 0 && out == 0:
		return nothing, 0
	case now-before.Seen > closeSamples:
		k.begin(mixed)
	case in == 0:
		if k.out > 0 && last == ledger.Idle {
			shown, idle = goesOn, k.Moved-before.Moved
		}
	case last == ledger.Idle && k.out > 0 && out > 0 && isLast:
		shown, idle = goesOn, now-k.Info.LastSent-before.Moved // and then the next request
		k.begin(single)
	case last != ledger.InFlight:
		shown, idle = k.endCycle(), now-k.Info.LastReceived-before.Moved
		k.begin(single)
		if out > 0 && (segments > 2 || segments > sentSegments && !isOne) {
			k.cycle = mixed
		}
	case out > 0 && isLast: // an answer, then the next request
		k.out += out
		shown, idle = k.endCycle(), k.Info.LastSent-k.Info.LastReceived
		k.begin(single)
	case out == 0, sentSegments <= 1 && k.Info.LastSent < k.Info.LastReceived:
		// A body in parts, or several requests at a time.
		gap := now - k.Info.LastReceived - before.Moved
		if gap > maxHeadGap || gap > minIdle && usual == 1 {
			k.cycle = several
			k.clean = -severalCycles
			shown = doubt
		}
	default: // an answer, the next request, and perhaps an answer to that
		k.begin(mixed)
	}
	k.in += in
	if in == 0 || k.AtServer != ledger.InFlight { // else that was the end of the answer before
		k.out += out
	}
	return shown, idle
}

// begin begins a cycle.
func (k *Kept) begin(c cycle) { k.in, k.out, k.cycle = 0, 0, c }

// endCycle notes that the next request has come, and returns what the cycle has shown. What is not
// clear says nothing.
func (k *Kept) endCycle() evidence {
	switch {
	case k.cycle != single || k.out == 0:
		return nothing
	case !k.isSmall():
		k.clean++
		return clean
	}
	k.clean = -severalCycles
	if max(k.in, k.out) > ledger.MaxControlBytes {
		return nothing
	}
	return doubt
}

// isSmall reports whether the latest cycle has too few bytes for a request and its answer: it may
// be a WINDOW_UPDATE or a PING of HTTP/2, or 100 Continue, beside requests that wait.
func (k *Kept) isSmall() bool {
	return k.in <= ledger.MaxControlBytes || k.out <= ledger.MaxControlBytes
}

// answered reports whether the last request seems answered, and was alone. On a connection that has
// shown a clean cycle, a sample that says nothing changes nothing.
func (k *Kept) answered() bool {
	isClear := k.cycle == single || k.cycle == unclear && k.clean > 0
	wasAlone := isClear && k.clean >= 0 && !k.isSmall()
	isQueued := k.Unread > 0 || k.Info.NotSent > 0
	return wasAlone && k.AtServer == ledger.Idle && k.State == tcp.Established && !isQueued
}

// idleFor returns how long no byte had moved in the latest sample.
func (k *Kept) idleFor() time.Duration { return min(k.Info.LastSent, k.Info.LastReceived) }

// IsIdle reports whether the connection, as now is, is still as idle as in the sample: nothing
// has moved, and nothing waits to be read or sent.
func (k *Kept) IsIdle(now *tcp.Socket) bool {
	return now.State == tcp.Established && now.Unread == 0 && now.Info.NotSent == 0 && now.HasInfo &&
		now.Info.Received == k.Received && now.Info.Sent-now.Info.Resent == k.Sent
}
