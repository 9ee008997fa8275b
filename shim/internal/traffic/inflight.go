package traffic

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// InFlight reports whether a request is coming in, or a response going out. The
// kernel's counters and ages distinguish a slow request from an idle connection without
// reading a byte. The first line that applies decides:
//
//	a listener, or TIME_WAIT                                      idle
//	unread or unsent bytes                                        in flight
//	no tcp_info, nothing received, or half-closed                 idle
//	nothing sent, or received later than sent                     in flight
//	sent later than received, or only one data segment received   idle
//	both in one jiffy, < 0.8 s ago                                in flight if the last ACK came in that jiffy too
//	both in one jiffy, earlier; last ACK in it                    in flight unless PingPong and PureACKs <= minPureACKs
//	both in one jiffy, earlier; last ACK >= 0.8 s after it        in flight unless PingPong (the peer answered our probe)
//	both in one jiffy, earlier; last ACK between                  idle
//
// The kernel counts ages in jiffies. A request received in the jiffy of the previous
// response acknowledged the response in the same jiffy; a nearby peer does so without a
// request too. The local side then decides: a response acknowledges its request, whereas
// a waiting request got a pure ACK, and pure ACKs end ping-pong mode.
// minPureACKs is how many pure ACKs a connection has without such a request.
func InFlight(s *tcp.Socket, minPureACKs uint32) bool {
	info := &s.Info
	switch {
	case s.State == tcp.Listen || s.State == tcp.TimeWait:
		return false
	case s.Unread > 0 || s.Unsent > 0:
		return true
	case !s.HasInfo || s.State != tcp.Established || info.Received == 0:
		return false // half-closed: the peer expects no response
	case info.Sent == 0 || info.LastReceived < info.LastSent:
		return true
	case info.Segments == 1 || info.LastReceived != info.LastSent:
		return false
	case !AmbiguousOrder(s):
		return info.LastAcked == info.LastSent
	case info.LastAcked != info.LastSent: // of our keep-alive probe, a pure ACK as well
		return !info.PingPong
	}
	return !info.PingPong || info.PureACKs > minPureACKs
}

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
	lateACK := info.LastSent-info.LastAcked >= maxDelayedACK
	return oneJiffy && info.LastReceived >= maxDelayedACK && (info.LastAcked == info.LastSent || lateACK)
}

// maxDelayedACK is longer than the kernel delays an ACK in the hope of a response:
// TCP_DELACK_MAX, at most half a second (include/net/tcp.h, tcp_send_delayed_ack).
const maxDelayedACK = 800 * time.Millisecond

// leastPureACKs returns the lower of known and the pure ACKs of a connection with a
// response. The kernel acknowledges the first segment of each connection by a pure ACK
// (tcp_event_data_recv in net/ipv4/tcp_input.c), unless the program has turned quick
// ACKs off (TCP_QUICKACK in tcp(7), as HAProxy does), proven by a connection without pure
// ACKs. Pure ACKs on every connection are no proof, hence the question for PingPong.
func leastPureACKs(known uint32, s *tcp.Socket) uint32 {
	if s.HasInfo && s.Info.Received > 0 && s.Info.Sent > 0 {
		return min(known, s.Info.PureACKs)
	}
	return known
}

// lastByte returns when the last byte moved, zero if none did.
func lastByte(s *tcp.Socket, now time.Time) (at time.Time) {
	if s.Info.Received > 0 {
		at = now.Add(-s.Info.LastReceived)
	}
	if s.Info.Sent > 0 {
		at = later(at, now.Add(-s.Info.LastSent))
	}
	return at
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
