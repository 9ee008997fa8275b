package traffic

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// InFlight reports whether a request is on its way in or an answer on its way
// out: bytes that nobody has read or acknowledged, or data received later than
// data was sent. So a slow request is told from an idle connection without a byte
// being read.
//
// The kernel counts in jiffies; where both were in the same one, a request that came
// after an answer acknowledged it, in that same one too. So does a peer nearby without
// a request. Then our own side tells: an answer acknowledges its request, but one that
// has been waiting for it was acknowledged without data by then, and the kernel is no
// longer prompt; alone is how many such acknowledgements there are besides. Where the
// peer acknowledged later, it may be our keep-alive probe that it did so.
func InFlight(s *tcp.Socket, alone uint32) bool {
	switch {
	case s.State == tcp.Listen || s.State == tcp.TimeWait:
		return false
	case s.Unread > 0 || s.Unsent > 0:
		return true
	case !s.HasInfo || s.State != tcp.Established || s.Info.Received == 0:
		return false // the peer of a half-closed connection waits for nothing more
	case s.Info.Sent == 0 || s.Info.LastReceived < s.Info.LastSent:
		return true
	}
	switch {
	case s.Info.Segments == 1 || s.Info.LastReceived != s.Info.LastSent:
		return false
	case !AmbiguousOrder(s):
		return s.Info.LastAcked == s.Info.LastSent
	case s.Info.LastAcked != s.Info.LastSent: // a probe of ours was answered, which is one of Bare
		return !s.Info.PingPong
	}
	return !s.Info.PingPong || s.Info.PureACKs > alone
}

// AmbiguousOrder reports whether only Prompt tells if a request is in flight: the last one
// and an answer were in the same jiffy, and the answer's acknowledgement was too, or is
// not the last that came. By now one that waits was acknowledged by itself.
func AmbiguousOrder(s *tcp.Socket) bool {
	return s.HasInfo && s.State == tcp.Established && s.Info.Received > 0 && s.Info.Sent > 0 && s.Info.Segments != 1 &&
		s.Info.LastReceived == s.Info.LastSent && s.Info.LastReceived >= maxDelayedACK &&
		(s.Info.LastAcked == s.Info.LastSent || s.Info.LastSent-s.Info.LastAcked >= maxDelayedACK)
}

// maxDelayedACK is more than the kernel puts off an acknowledgement in the hope of an answer:
// TCP_DELACK_MAX, and half a second at most (include/net/tcp.h, tcp_send_delayed_ack).
const maxDelayedACK = 800 * time.Millisecond

// leastPureACKs is how many acknowledgements without data a connection has on which every
// request was answered at once: the first segment is always acknowledged so
// (tcp_event_data_recv in net/ipv4/tcp_input.c), unless the program has turned it off
// (TCP_QUICKACK in tcp(7), as HAProxy does). A connection that has none shows that;
// that all have some shows nothing, which is why Prompt is asked too.
func leastPureACKs(known uint32, s *tcp.Socket) uint32 {
	if s.HasInfo && s.Info.Received > 0 && s.Info.Sent > 0 {
		return min(known, s.Info.PureACKs)
	}
	return known
}

// moved is when the last byte moved, and zero where none did.
func moved(s *tcp.Socket, now time.Time) (at time.Time) {
	if s.Info.Received > 0 {
		at = now.Add(-s.Info.LastReceived)
	}
	if s.Info.Sent > 0 {
		at = later(at, now.Add(-s.Info.LastSent))
	}
	return at
}

// identity is what a connection is known by: the kernel's cookie, else its two
// ends.
func identity(s *tcp.Socket) uint64 {
	if s.Cookie != 0 {
		return s.Cookie
	}
	return ConnKey(s.Local, s.Remote)
}

// ConnKey is a number for the two ends of a connection.
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
