package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// course is what earlier samples say about the bytes of a connection.
type course struct {
	judgment
	last   arrival       // of bytes; at is 0 if no byte was received
	paused time.Duration // the pauses of at least minPause between bytes received, in all
	bytes  uint64        // received at the latest beat
	beat   rhythm        // of equal numbers of bytes
}

// judgment is the state of the last request in the latest sample with empty queues.
type judgment struct {
	made           bool
	request        RequestState
	doubtful       bool   // the request may have come in several segments, see Classify
	since          moment // when the last byte moved, PINGs aside
	received, sent uint64 // bytes of the connection by then
}

// judge returns the state of the last request. PINGs do not change the state. While no
// byte moves, an ACK of a keep-alive probe does not, either.
func (c *course) judge(s *tcp.Socket, bytes *remembered, moved moment, usual Usual) RequestState {
	state := Classify(s, usual)
	switch {
	case c.oneWay(bytes):
		return Idle
	case peerGone(s) || s.Unread > 0 || s.Unsent > 0 || !s.HasInfo || !mayReceive(s):
		return state
	}
	next := judgment{made: true, since: moved, received: bytes.received, sent: bytes.sent}
	received := bytes.received - c.received
	sent := bytes.sent - c.sent
	anyMoved := received > 0 || sent > 0
	switch {
	case !c.made:
	case c.keepsState(&s.Info, received, sent):
		state = c.request
		next.since = c.since
	case !anyMoved && ackedLate(s) && (c.request == Idle || c.doubtful):
		state = c.request
	}
	next.doubtful = state == Undetermined && (c.doubtful && !anyMoved || !ackedLate(s) && !usual.answered(&s.Info))
	next.request = state
	if !c.made || !halfPING(c.request, state, received, sent) {
		c.judgment = next
	}
	return state
}

// maxControlBytes limits what two ends of HTTP/2 tell each other beside requests and
// responses: a PING and its ACK, of 17 bytes each, or 39 and 46 over TLS.
const maxControlBytes = 64

// keepsState reports whether the bytes moved since a judgment are PINGs and their ACKs at
// most, so that the state stays. The bytes sent do not include bytes sent again.
//
// The client's ACK of a PING is received later than the PING was sent, and would look like
// a request on an idle connection. Bytes received and sent within one jiffy prove nothing:
// the judgment may have taken a waiting request for answered.
func (j *judgment) keepsState(info *tcp.Info, received, sent uint64) bool {
	switch {
	case received != sent || sent > maxControlBytes:
		return false
	case j.request == Idle:
		return info.LastReceived < info.LastSent
	}
	return j.request == InFlight || sent > 0
}

// halfPING reports whether the bytes moved since a judgment may be a PING whose ACK is to
// come: a PING of the client during a request, or of the server on an idle connection.
func halfPING(before, now RequestState, received, sent uint64) bool {
	switch {
	case before == InFlight:
		return sent == 0 && 0 < received && received <= maxControlBytes
	case before == Idle && now == Idle:
		return received == 0 && 0 < sent && sent <= maxControlBytes
	}
	return false
}

// A stream on which the program never sends has paused for minPauses in all, in pauses of
// at least minPause each. A slow request pauses less: a client that asks whether to send
// the body (Expect: 100-continue) waits for one second.
const (
	minPause  = 900 * time.Millisecond
	minPauses = 1800 * time.Millisecond
)

// oneWay reports whether the connection is a stream on which the program never sends, such
// as a log's.
func (c *course) oneWay(bytes *remembered) bool { return bytes.sent == 0 && c.paused >= minPauses }

// A stream that is older than the trigger has had streamSegments segments, which came
// streamGap apart on average. The segments of a slow request came at once.
const (
	streamSegments = 4
	streamGap      = 500 * time.Millisecond
)

// begin notes the first sample of a connection. The age of the last byte sent is the age
// of the connection, if no byte was sent.
func (c *course) begin(s *tcp.Socket, now moment) {
	info := &s.Info
	c.last.at = now - moment(info.LastReceived)
	if receivedNothing(s) {
		c.last.at = 0
	}
	span := info.LastSent - info.LastReceived
	if s.HasInfo && info.Sent == 0 && info.Segments >= streamSegments && span >= streamGap*time.Duration(info.Segments) {
		c.paused = span
	}
}

// add notes the bytes that moved between two samples: before is the activity before these
// bytes, and inFlight whether the earlier sample showed a request in flight.
func (c *course) add(s *tcp.Socket, m *moves, now moment, before activity, inFlight bool) {
	if m.received == 0 {
		if m.sent > 0 && !inFlight { // not a response: the program sends by itself
			c.bytes = 0
		}
		return
	}
	at := now - moment(s.Info.LastReceived)
	gap := time.Duration(at - c.last.at)
	if c.last.at != 0 && gap >= minPause {
		c.paused += gap
	}
	if m.received != c.bytes || m.received > maxProbeBytes {
		c.bytes = m.received
		c.beat = rhythm{}
	} else {
		c.beat.add(&c.last, at, minTolerance, 1)
	}
	c.last = arrival{at, before}
}
