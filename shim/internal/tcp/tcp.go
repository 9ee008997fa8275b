// Package tcp has the types of TCP sockets as the kernel shows them, in sock_diag(7) or in
// /proc/net/tcp.
package tcp

import (
	"hash/maphash"
	"net/netip"
	"slices"
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

// Socket is the state of a socket at one moment.
type Socket struct {
	State         State
	Local, Remote netip.AddrPort // unmapped: ::ffff:10.0.0.1 is 10.0.0.1

	Unread uint32 // bytes not read by the program; of a listener, connections not accepted
	Unsent uint32 // bytes not acknowledged by the peer, sent or not; of a listener, the backlog

	Retries uint8 // retransmissions or probes in a row without an answer of the peer

	Inode  uint32 // 0: in an accept queue, or closed by the program
	Cookie uint64 // the kernel's identity of the socket, never reused; 0: not known
	Cgroup uint64 // id of the control group in version 2's hierarchy; 0: not known, 1: the root

	HasInfo bool // Info is known
	Info    Info
}

// DiscountFIN subtracts the peer's FIN from the bytes received and unread: the kernel
// counts a FIN as a byte. The FIN has arrived in the states CloseWait, LastAck and
// Closing. In state Close, of a socket that is gone, the FIN is assumed to have arrived if
// the peer has acknowledged our own FIN, which counts as a byte too. If the peer closes
// more than some 40 ms after us, that is wrong: the result is a byte too low.
func (s *Socket) DiscountFIN() {
	switch s.State {
	case CloseWait, LastAck, Closing:
	case Close:
		if s.Info.Acked <= s.Info.Sent { // reset, or some bytes were sent twice
			return
		}
	default:
		return
	}
	s.Unread -= min(s.Unread, 1)
	s.Info.Received -= min(s.Info.Received, 1)
}

// ConnKey returns a hash of both ends of a connection, the same as long as the process runs.
func ConnKey(local, remote netip.AddrPort) uint64 {
	return maphash.Comparable(seed, [...]netip.AddrPort{local, remote})
}

var seed = maphash.MakeSeed()

// Ends returns the ConnKey of a connection.
func (s *Socket) Ends() uint64 { return ConnKey(s.Local, s.Remote) }

// IsOpen reports whether the program may still answer: a peer that has closed its end may wait
// for the response.
func (s *Socket) IsOpen() bool { return s.State == Established || s.State == CloseWait }

// maxRetries is how many retransmissions or probes in a row a peer leaves unanswered that
// is gone: some 12 s, since the kernel doubles the time between two from 0.2 s on.
const maxRetries = 6

// answerTime is how long a peer that was away may take to answer a retransmission.
const answerTime = time.Second

// PeerGone reports whether the peer no longer answers. The latest retransmission has had its
// time.
func (s *Socket) PeerGone() bool {
	waits := s.Retries == maxRetries && s.HasInfo && s.Info.LastSent < answerTime
	return s.Retries >= maxRetries && !waits
}

// Info is the part of struct tcp_info (include/uapi/linux/tcp.h) that shows whether a
// connection is busy. Times are ages, in the kernel's jiffies; if nothing was ever sent or
// received, the age of the connection. A listener's Info has no meaning.
type Info struct {
	LastSent, LastReceived time.Duration // of data, not of ACKs
	LastAcked              time.Duration // since an ACK was received
	Received               uint64        // bytes; see DiscountFIN
	Segments               uint32        // received with data
	SentSegments           uint32        // sent with data
	PureACKs               uint32        // segments sent without data: ACKs and probes
	PingPong               bool          // the last bytes received were acknowledged by a response; see procfs
	Acked                  uint64        // bytes acknowledged by the peer
	Sent                   uint64        // bytes, including bytes sent again
	Resent                 uint64        // bytes of Sent that were sent again; 0: not known
	RTT                    time.Duration // a round trip, the shortest lately; over an hour if none is known
	NotSent                uint32        // bytes written by the program and not yet sent
}

// Ports is a set of TCP or UDP ports, in ascending order.
type Ports []uint16

// PortSet sorts ports in place, and returns each port once.
func PortSet(ports []uint16) Ports {
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Has reports whether the port is in the set.
func (p Ports) Has(port uint16) bool {
	_, found := slices.BinarySearch(p, port)
	return found
}

// Union returns the ports of both sets.
func (p Ports) Union(q Ports) Ports { return PortSet(slices.Concat(p, q)) }
