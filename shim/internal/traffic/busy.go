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
// being read. The kernel counts in jiffies; where both were in the same one, a
// request that came after an answer acknowledged it, in that same one too. So
// may a peer nearby have done without a request; after its first one it does.
func InFlight(s *tcp.Socket) bool {
	switch {
	case s.State == tcp.Listen || s.State == tcp.TimeWait:
		return false
	case s.Unread > 0 || s.Unsent > 0:
		return true
	case !s.Timed || s.State != tcp.Established || s.Info.Received == 0:
		return false // the peer of a half-closed connection waits for nothing more
	case s.Info.Sent == 0 || s.Info.LastReceived < s.Info.LastSent:
		return true
	}
	return s.Info.LastReceived == s.Info.LastSent && s.Info.LastAcked == s.Info.LastSent && s.Info.Segments != 1
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
	var ends [36]byte
	put(ends[:18], s.Local)
	put(ends[18:], s.Remote)
	h := fnv.New64a()
	h.Write(ends[:])
	return h.Sum64()
}

func put(to []byte, end netip.AddrPort) {
	addr := end.Addr().As16()
	copy(to, addr[:])
	binary.NativeEndian.PutUint16(to[16:], end.Port())
}
