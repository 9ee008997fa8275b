package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// The lengths of struct inet_diag_msg and of its struct inet_diag_sockid.
const (
	socketLen   = 72
	socketIDLen = 48
)

// Attributes of a socket: INET_DIAG_INFO and INET_DIAG_CGROUP_ID (5.8).
const (
	attrInfo   = 2
	attrCgroup = 21
)

// decodeSocket sets all of s from a struct inet_diag_msg and its attributes. Zones of
// addresses are left out.
func decodeSocket(payload []byte, s *tcp.Socket) error {
	*s = tcp.Socket{}
	if len(payload) < socketLen {
		return ErrMalformed
	}
	family := payload[0]
	id := payload[4 : 4+socketIDLen]
	queues := payload[4+socketIDLen : socketLen]
	local, ok := addrPort(family, id[4:20], id[0:2])
	if !ok {
		return ErrMalformed
	}
	s.Local = local
	s.Remote, _ = addrPort(family, id[20:36], id[2:4])
	s.State = tcp.State(payload[1])
	s.Cookie = uint64(native.Uint32(id[40:])) | uint64(native.Uint32(id[44:]))<<32
	s.Unread = native.Uint32(queues[4:]) // behind idiag_expires
	s.Unsent = native.Uint32(queues[8:])
	s.Inode = native.Uint32(queues[16:])
	err := decodeAttributes(payload[socketLen:], s)
	s.Retries = payload[3] // idiag_retrans
	s.DiscountFIN()
	return err
}

// decodeAttributes sets Info and Cgroup. Attributes that are unknown or too short are
// skipped, as is the meaningless tcp_info of a listener.
func decodeAttributes(b []byte, s *tcp.Socket) error {
	for len(b) > 0 { // an attribute has a length, a type and a value
		if len(b) < attrLen {
			return ErrMalformed
		}
		n := int(native.Uint16(b))
		if n < attrLen || n > len(b) {
			return ErrMalformed
		}
		value := b[attrLen:n]
		switch kind := native.Uint16(b[2:]); {
		case kind == attrInfo && s.State != tcp.Listen:
			decodeInfo(value, s)
		case kind == attrCgroup && len(value) >= 8:
			s.Cgroup = native.Uint64(value)
		}
		b = b[min(align(n), len(b)):]
	}
	return nil
}

// addrPort decodes one end of a socket.
func addrPort(family uint8, addr, port []byte) (end netip.AddrPort, ok bool) {
	var ip netip.Addr
	switch family {
	case unix.AF_INET:
		ip = netip.AddrFrom4([4]byte(addr))
	case unix.AF_INET6:
		ip = netip.AddrFrom16([16]byte(addr)).Unmap()
	default:
		return end, false
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(port)), true
}

// decodeInfo sets Info from the part of struct tcp_info that the kernel knows: the struct has
// only grown at its end.
func decodeInfo(b []byte, s *tcp.Socket) {
	var info unix.TCPInfo
	known := copy(unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info)), b)
	setInfo(&info, uintptr(known), s)
}

// setInfo sets Info from the known bytes of a struct tcp_info. Before 4.1 Info is not known: without
// bytes every connection would look unused. Before 4.19 acknowledged bytes stand for sent bytes, or no
// request would ever seem answered; sent bytes not yet acknowledged are in Unsent.
func setInfo(info *unix.TCPInfo, known uintptr, s *tcp.Socket) {
	if known < unsafe.Offsetof(info.Bytes_received)+8 { // 4.1
		return
	}
	s.HasInfo = true
	s.Info = tcp.Info{
		LastSent:     milliseconds(info.Last_data_sent),
		LastReceived: milliseconds(info.Last_data_recv),
		LastAcked:    milliseconds(info.Last_ack_recv),
		RTT:          microseconds(info.Rtt),
		PureACKs:     tcp.PureACKsUnknown,
		Acked:        info.Bytes_acked,
		Received:     info.Bytes_received,
		Sent:         info.Bytes_acked,
	}
	if known >= unsafe.Offsetof(info.Data_segs_out)+4 { // 4.6
		s.Info.NotSent = info.Notsent_bytes
		s.Info.RTT = microseconds(info.Min_rtt)
		s.Info.Segments = info.Data_segs_in
		s.Info.SentSegments = info.Data_segs_out
		s.Info.PureACKs = info.Segs_out - info.Data_segs_out
	}
	if known >= unsafe.Offsetof(info.Bytes_sent)+8 { // 4.19
		s.Info.Sent = info.Bytes_sent
	}
	if known >= unsafe.Offsetof(info.Bytes_retrans)+8 { // 4.19
		s.Info.Resent = info.Bytes_retrans
	}
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
func milliseconds(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }
