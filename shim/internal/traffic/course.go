package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// course is what earlier samples say about the bytes of a connection.
type course struct {
	judgment
	last  arrival       // of bytes; at is 0 if no byte was received
	waits time.Duration // since last, how long a request was in flight
	bytes uint64        // received at the latest beat
	beat  rhythm        // of equal numbers of bytes
}

// judgment is the state of the last request in the latest sample with empty queues.
type judgment struct {
	made           bool
	request        RequestState
	doubtful       bool   // the request may have come in several segments, see Classify
	since          moment // when the last byte moved, PINGs aside
	received, sent uint64 // bytes of the connection by then
}

// judge returns the state of the last request. PINGs do not end a request. While no byte
// moves, an ACK of a keep-alive probe does not change the state.
func (c *course) judge(s *tcp.Socket, bytes *remembered, moved moment, usual Usual) RequestState {
	state := Classify(s, usual)
	switch {
	case peerGone(s) || s.Unread > 0 || s.Unsent > 0 || !s.HasInfo || !mayReceive(s):
		return state
	}
	next := judgment{made: true, since: moved, received: bytes.received, sent: bytes.sent}
	received := bytes.received - c.received
	sent := bytes.sent - c.sent
	anyMoved := received > 0 || sent > 0
	switch {
	case !c.made:
	case c.keepsState(received, sent):
		state = c.request
		next.since = c.since
	case !anyMoved && ackedLate(s) && (c.request == Idle || c.doubtful):
		state = c.request
	}
	next.doubtful = state == Undetermined && (c.doubtful && !anyMoved || !ackedLate(s) && !usual.answered(&s.Info))
	next.request = state
	if !c.made || !c.halfPING(received, sent) {
		c.judgment = next
	}
	return state
}

// partlyRead reports whether the program may have read a part of a request whose rest is
// unread. Before the first sample with an empty queue only an untouched first request is
// certain: what was read of a kept connection may have been earlier requests.
func (c *course) partlyRead(s *tcp.Socket) bool {
	read := s.Info.Received - min(uint64(s.Unread), s.Info.Received)
	return s.HasInfo && (c.request != Idle || read > c.received)
}

// maxControlBytes limits what two ends of HTTP/2 tell each other beside requests and
// responses: a PING and its ACK, of 17 bytes each, or 39 and 46 over TLS.
const maxControlBytes = 64

// keepsState reports whether the bytes moved since a judgment are PINGs and their ACKs at
// most, during a request. The bytes sent do not include bytes sent again. A PING on an idle
// connection holds: the client's ACK looks like a request.
func (j *judgment) keepsState(received, sent uint64) bool {
	if received != sent || sent > maxControlBytes {
		return false
	}
	return j.request == InFlight || j.request == Undetermined && sent > 0
}

// halfPING reports whether the bytes moved since a judgment may be a client's PING during a
// request, whose ACK is to come.
func (j *judgment) halfPING(received, sent uint64) bool {
	return j.request == InFlight && sent == 0 && 0 < received && received <= maxControlBytes
}

// begin notes the first sample of a connection.
func (c *course) begin(s *tcp.Socket, now moment) {
	if !receivedNothing(s) {
		c.last.at = now - moment(s.Info.LastReceived)
	}
}

// add notes the bytes that moved between two samples: before is the activity before these
// bytes, and inFlight whether the earlier sample showed a request in flight. A client that
// waits for an answer most of the time is no probe, though it may send the same bytes again
// and again: the PINGs or WINDOW_UPDATEs of a stream.
func (c *course) add(s *tcp.Socket, m *moves, now moment, before activity, inFlight bool) {
	if m.received == 0 {
		if m.sent > 0 && !inFlight { // not a response: the program sends by itself
			c.bytes = 0
		}
		return
	}
	at := now - moment(s.Info.LastReceived)
	waits := c.waits > time.Duration(at-c.last.at)/2
	if waits || m.received != c.bytes || m.received > maxProbeBytes {
		c.bytes = m.received
		c.beat = rhythm{}
	} else {
		c.beat.add(&c.last, at, minTolerance, 1)
	}
	c.last = arrival{at, before}
	c.waits = 0
}
