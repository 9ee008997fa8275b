package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// course is what earlier samples say about the bytes of a connection.
type course struct {
	request  RequestState                    // of the latest sample with empty queues
	doubtful bool                            // the request may have come in several segments, see Classify
	judged   struct{ received, sent uint64 } // the bytes by then
	last     arrival                         // of bytes, at 0 if none was received
	paused   time.Duration                   // the pauses of at least minPause between bytes received, in all
	bytes    uint64                          // received at the latest beat
	beat     rhythm                          // of equal numbers of bytes
}

// maxControlBytes limits what two ends of HTTP/2 tell each other beside requests and
// responses: a PING and its ACK, 17 bytes each, or 39 over TLS 1.3.
const maxControlBytes = 64

// judge returns the state of the last request. As many bytes in as out, and few, are no
// response to a request in flight. While no byte moves, a late ACK proves nothing.
func (c *course) judge(s *tcp.Socket, bytes *remembered, minPureACKs uint32) RequestState {
	state := Classify(s, minPureACKs)
	switch {
	case c.oneWay(bytes):
		return Idle
	case peerGone(s) || s.Unread > 0 || s.Unsent > 0 || !s.HasInfo || !mayReceive(s):
		return state
	}
	received := bytes.received - c.judged.received
	sent := bytes.sent - c.judged.sent
	moved := received > 0 || sent > 0
	control := received == sent && sent <= maxControlBytes
	switch {
	case c.request == InFlight && control: // or nothing moved
		state = InFlight
	case !moved && ackedLate(s) && (c.request == Idle || c.doubtful): // by the answer to a keep-alive probe
		state = c.request
	}
	inSegments := s.Info.PureACKs > minPureACKs && s.Info.Segments > s.Info.SentSegments
	c.doubtful = state == Undetermined && (c.doubtful && !moved || !ackedLate(s) && inSegments)
	if c.request == InFlight && sent == 0 && received <= maxControlBytes {
		return state // perhaps half of a PING and its ACK
	}
	c.request = state
	c.judged.received = bytes.received
	c.judged.sent = bytes.sent
	return state
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
// streamGap apart on average.
const (
	streamSegments = 4
	streamGap      = 500 * time.Millisecond
)

// begin notes the first sample of a connection. The age of the last byte sent is the age
// of the connection, if none was sent.
func (c *course) begin(s *tcp.Socket, now moment) {
	info := &s.Info
	c.last.at = now - moment(info.LastReceived)
	if receivedNothing(s) {
		c.last.at = 0
	}
	if s.HasInfo && info.Sent == 0 && info.Segments >= streamSegments && info.LastSent >= streamGap*time.Duration(info.Segments) {
		c.paused = info.LastSent
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
