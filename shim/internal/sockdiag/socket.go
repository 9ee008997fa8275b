package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// inetDiagMsg is struct inet_diag_msg.
type inetDiagMsg struct {
	family, state, timer, retransmits uint8
	localPort, remotePort             [2]byte
	local, remote                     [16]byte
	_                                 uint32 // device
	cookie                            [2]uint32
	_, unread, unsent, _, inode       uint32 // _: expires, uid
}

// bytesOf returns the memory of a value.
func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

// Attributes of a socket: INET_DIAG_INFO and INET_DIAG_CGROUP_ID (5.8).
const (
	attrInfo   = 2
	attrCgroup = 21
)

// decodeSocket sets all of s from a struct inet_diag_msg and its attributes. Zones of
// addresses are left out.
func decodeSocket(payload []byte, s *tcp.Socket) error {
	*s = tcp.Socket{}
	var m inetDiagMsg
	known := copy(bytesOf(&m), payload)
	local, ok := addrPort(m.family, m.local, m.localPort)
	if known < int(unsafe.Sizeof(m)) || !ok {
		return errMalformed
	}
	s.Local = local
	s.Remote, _ = addrPort(m.family, m.remote, m.remotePort)
	s.State = tcp.State(m.state)
	s.Cookie = uint64(m.cookie[0]) | uint64(m.cookie[1])<<32
	s.Unread = m.unread
	s.Unsent = m.unsent
	s.Inode = m.inode
	s.Retries = m.retransmits
	err := decodeAttributes(payload[known:], s, m.timer != keepAlive)
	s.DiscountFIN()
	return err
}

// keepAlive is the kind of the timer of keep-alive probes, which come without backoff.
const keepAlive = 2

// decodeAttributes sets Info and Cgroup. Attributes that are unknown or too short are
// skipped, as is the meaningless tcp_info of a listener. Retransmissions and probes that back off are
// those that have left this host: where its device drops them, the kernel tries again each half second. See
// TCP_RESOURCE_PROBE_INTERVAL in net/ipv4/tcp_timer.c and tcp_output.c.
func decodeAttributes(b []byte, s *tcp.Socket, backsOff bool) error {
	for len(b) > 0 { // an attribute has a length, a type and a value
		if len(b) < attrLen {
			return errMalformed
		}
		value, rest, err := cut(b, attrLen, int(native.Uint16(b)))
		if err != nil {
			return err
		}
		switch kind := native.Uint16(b[2:]); {
		case kind == attrInfo && s.State != tcp.Listen:
			var info unix.TCPInfo
			setInfo(&info, copy(bytesOf(&info), value), s)
			if backsOff && info.Backoff == 0 {
				s.Retries = 0
			}
		case kind == attrCgroup && len(value) >= 8:
			s.Cgroup = native.Uint64(value)
		}
		b = rest
	}
	return nil
}

// addrPort decodes one end of a socket.
func addrPort(family uint8, addr [16]byte, port [2]byte) (end netip.AddrPort, ok bool) {
	ip := netip.AddrFrom16(addr).Unmap()
	switch family {
	case unix.AF_INET:
		ip = netip.AddrFrom4([4]byte(addr[:4]))
	case unix.AF_INET6:
	default:
		return end, false
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port[:])), true
}

// setInfo sets Info from the known bytes of a struct tcp_info, which has only grown at its end. Before 4.6
// Info is not known. Before 4.19 acknowledged bytes stand for sent bytes, or no
// request would ever seem answered; sent bytes not yet acknowledged are in Unsent.
func setInfo(info *unix.TCPInfo, length int, s *tcp.Socket) {
	known := uintptr(length)
	if known < unsafe.Offsetof(info.Data_segs_out)+4 { // 4.6
		return
	}
	s.HasInfo = true
	s.Info = tcp.Info{
		LastSent:     time.Duration(info.Last_data_sent) * time.Millisecond,
		LastReceived: time.Duration(info.Last_data_recv) * time.Millisecond,
		LastAcked:    time.Duration(info.Last_ack_recv) * time.Millisecond,
		RTT:          time.Duration(info.Min_rtt) * time.Microsecond,
		Acked:        info.Bytes_acked,
		Received:     info.Bytes_received,
		Sent:         info.Bytes_acked,
		NotSent:      info.Notsent_bytes,
		Segments:     info.Data_segs_in,
		SentSegments: info.Data_segs_out,
		PureACKs:     info.Segs_out - info.Data_segs_out,
	}
	if known >= unsafe.Offsetof(info.Bytes_retrans)+8 { // 4.19
		s.Info.Sent = info.Bytes_sent
		s.Info.Resent = info.Bytes_retrans
	}
}
