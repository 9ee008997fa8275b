// Package tcp has the words for TCP sockets as the kernel tells of them, wherever
// it does: sock_diag(7) or /proc/net/tcp.
package tcp

import (
	"math"
	"net/netip"
	"time"
)

// State is a TCP state, numbered as in include/net/tcp_states.h.
type State uint8

// The states.
const (
	Established State = 1 + iota
	SynSent
	SynRecv
	FinWait1
	FinWait2
	TimeWait
	Close
	CloseWait
	LastAck
	Listen
	Closing
	NewSynRecv
)

// Socket is one socket at one moment.
type Socket struct {
	State         State
	Local, Remote netip.AddrPort // unmapped: ::ffff:10.0.0.1 is 10.0.0.1

	Unread uint32 // bytes that the program has not read; of a listener, connections that it has not accepted
	Unsent uint32 // bytes that the peer has not acknowledged, sent or not; of a listener, its backlog

	Inode  uint32 // 0: in an accept queue, or nobody's any more
	Cookie uint64 // the kernel's name for it, never used again; 0: not told
	Cgroup uint64 // the id of its control group in version 2's hierarchy; 0: not told, 1: the root

	HasInfo bool // Info was told
	Info    Info
}

// DiscountFIN takes the peer's FIN out of what was received and is unread: the kernel
// counts it as a byte. It has come where the state says that we are to end too, or
// that both have. Of a socket that is gone it is not told. There it is taken to
// have come if ours was acknowledged, which counts as a byte too: so it is but for
// a peer that does not end within some 40 ms after us, of which we then say a byte
// too few.
func (s *Socket) DiscountFIN() {
	switch s.State {
	case CloseWait, LastAck, Closing:
	case Close:
		if s.Info.Acked <= s.Info.Sent { // reset, or something was sent again
			return
		}
	default:
		return
	}
	s.Unread -= min(s.Unread, 1)
	s.Info.Received -= min(s.Info.Received, 1)
}

// PureACKsUnknown is Info's Bare where the kernel does not tell.
const PureACKsUnknown = math.MaxUint32

// Info is what of struct tcp_info (include/uapi/linux/tcp.h) tells who is busy.
// Times are ages, in the kernel's jiffies; where nothing was ever sent, or
// received, it is the connection's age. Of listeners nothing here means anything.
type Info struct {
	LastSent, LastReceived time.Duration // data, not acknowledgements
	LastAcked              time.Duration // an acknowledgement received
	Received               uint64        // bytes; see LessFIN
	Segments               uint32        // received with data
	PureACKs               uint32        // sent without data: acknowledgements and probes; AllBare where it is not told
	PingPong               bool          // what was received last was answered at once; see procnet.Root's PingPong
	Acked                  uint64        // bytes that the peer has acknowledged
	Sent                   uint64        // bytes, with those sent again
}
