package traffic

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// RequestState is the state of the last request on a connection.
type RequestState uint8

// The states.
const (
	Idle         RequestState = iota // no request, or answered
	InFlight                         // the request is coming in, or waits for a response, or the response is going out
	Undetermined                     // Idle or InFlight: the kernel does not show which
)

// String returns the state as the doc comment of [Classify] spells it.
func (r RequestState) String() string { return [...]string{"idle", "in flight", "undetermined"}[r] }

// Classify returns the state of the last request on a connection. The kernel's counters
// and ages distinguish a slow request from an idle connection without reading a byte. The
// first line that applies decides:
//
//	a listener, or TIME_WAIT                                      idle
//	the peer no longer answers                                    idle
//	unread or unsent bytes                                        in flight
//	no tcp_info, nothing received, or closed by the program       idle
//	nothing sent, or received later than sent                     in flight
//	sent later than received, or only one data segment received   idle
//	both in one jiffy, last ACK later by < 0.8 s                  idle
//	both in one jiffy, < 0.8 s ago                                undetermined
//	half-closed by the peer, both in one jiffy                    undetermined
//	both in one jiffy, last ACK >= 0.8 s after it, PingPong       idle
//	both in one jiffy, PingPong, pure ACKs and segments as usual  idle
//	both in one jiffy                                             undetermined
//
// The kernel counts ages in jiffies. A request received in the jiffy of the previous
// response acknowledged the response in the same jiffy; a nearby peer does so without a
// request too. The local side then decides: a response acknowledges its request, whereas
// a waiting request got a pure ACK. A delayed pure ACK ends ping-pong mode; the ACK is not
// delayed if the request came in several segments, which [Usual] can tell. A FIN begins
// ping-pong mode. An ACK that came long after both answered a keep-alive probe of our
// side, a pure ACK as well.
func Classify(s *tcp.Socket, usual Usual) RequestState {
	info := &s.Info
	switch {
	case s.State == tcp.Listen || s.State == tcp.TimeWait || peerGone(s):
		return Idle
	case s.Unread > 0 || s.Unsent > 0:
		return InFlight
	case !s.HasInfo || !mayReceive(s) || info.Received == 0:
		return Idle
	case info.Sent == 0 || info.LastReceived < info.LastSent:
		return InFlight
	case info.Segments == 1 || info.LastReceived != info.LastSent:
		return Idle
	case info.LastAcked < info.LastSent && !ackedLate(s):
		return Idle
	case info.LastSent < maxDelayedACK || s.State == tcp.CloseWait:
		return Undetermined
	case info.PingPong && (ackedLate(s) || usual.answered(info)):
		return Idle
	}
	return Undetermined
}

// Usual is what the connections of a container without a waiting request have in common.
type Usual struct {
	PureACKs uint32 // at most 1
	Excess   uint32 // how many more segments were received than sent: 0, or 1
}

// learn adds a connection.
//
// The kernel acknowledges the first segment of each connection by a pure ACK
// (tcp_event_data_recv in net/ipv4/tcp_input.c), unless the program has turned quick
// ACKs off (TCP_QUICKACK in tcp(7), as HAProxy does), proven by a connection without pure
// ACKs. Pure ACKs on every connection are no proof, hence the question for PingPong.
//
// A client's handshake of TLS may take one segment more than the server's, proven by a
// connection whose response is known to be sent later than its request.
func (u *Usual) learn(s *tcp.Socket) {
	info := &s.Info
	if !s.HasInfo || info.Received == 0 || info.Sent == 0 {
		return
	}
	u.PureACKs = min(u.PureACKs, info.PureACKs)
	if info.LastSent < info.LastReceived && info.Segments == info.SentSegments+1 && info.SentSegments > 0 {
		u.Excess = 1
	}
}

// answered reports whether the last request of several segments, if there was one, has
// been answered. More segments received than usual may be a request of several segments,
// and fewer mean responses of several segments, which hide the segments of a request.
func (u *Usual) answered(info *tcp.Info) bool {
	switch {
	case info.PureACKs == 0:
		return true
	case info.Segments == 0 || info.Segments > info.SentSegments+u.Excess:
		return false
	}
	return info.PureACKs <= u.PureACKs || info.SentSegments <= info.Segments+1
}

// maxRetries is how many retransmissions or probes in a row a peer leaves unanswered that
// is gone: some 12 s, since the kernel doubles the time between two from 0.2 s on.
const maxRetries = 6

// peerGone reports whether the peer no longer answers.
func peerGone(s *tcp.Socket) bool { return s.Retries >= maxRetries }

// mayReceive reports whether the program may still answer: a peer that has closed its end
// may wait for the response.
func mayReceive(s *tcp.Socket) bool { return s.State == tcp.Established || s.State == tcp.CloseWait }

// AmbiguousOrder reports whether only Info.PingPong tells if a request is in flight: the
// last request and the last response were in one jiffy, and the ACK of the response came
// in that jiffy too or is not the latest ACK. A waiting request has
// had a pure ACK by now.
func AmbiguousOrder(s *tcp.Socket) bool {
	info := &s.Info
	if !s.HasInfo || s.State != tcp.Established || info.Received == 0 || info.Sent == 0 || info.Segments == 1 {
		return false
	}
	oneJiffy := info.LastReceived == info.LastSent
	return oneJiffy && info.LastReceived >= maxDelayedACK && (info.LastAcked == info.LastSent || ackedLate(s))
}

// ackedLate reports whether the latest ACK came long after the last response.
func ackedLate(s *tcp.Socket) bool { return s.Info.LastSent-s.Info.LastAcked >= maxDelayedACK }

// maxDelayedACK is longer than the kernel delays an ACK in the hope of a response:
// TCP_DELACK_MAX, at most half a second (include/net/tcp.h, tcp_send_delayed_ack).
const maxDelayedACK = 800 * time.Millisecond

// receivedNothing reports whether no byte ever came from the peer, as far as the source
// shows bytes. A FIN may be counted as a byte, and is no segment with data.
func receivedNothing(s *tcp.Socket) bool {
	return s.HasInfo && (s.Info.Received == 0 || s.Info.Received == 1 && s.Info.Segments == 0)
}

// identity returns the kernel's cookie of a connection, or the ConnKey.
func identity(s *tcp.Socket) uint64 {
	if s.Cookie != 0 {
		return s.Cookie
	}
	return ConnKey(s.Local, s.Remote)
}

// ConnKey returns a hash of both ends of a connection.
func ConnKey(local, remote netip.AddrPort) uint64 {
	var ends [36]byte
	put(ends[:18], local)
	put(ends[18:], remote)
	h := fnv.New64a()
	h.Write(ends[:])
	return h.Sum64()
}

func put(to []byte, end netip.AddrPort) {
	addr := end.Addr().As16()
	copy(to, addr[:])
	binary.NativeEndian.PutUint16(to[16:], end.Port())
}
