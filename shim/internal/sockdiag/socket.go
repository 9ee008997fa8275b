package sockdiag

import (
	"encoding/binary"
	"fmt"
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
		return fmt.Errorf("%w: a socket of %d bytes", ErrMalformed, len(payload))
	}
	family := payload[0]
	id := payload[4 : 4+socketIDLen]
	queues := payload[4+socketIDLen : socketLen]
	local, ok := addrPort(family, id[4:20], id[0:2])
	if !ok {
		return fmt.Errorf("%w: unknown address family %d", ErrMalformed, family)
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
	for len(b) > 0 {
		kind, value, rest, err := nextAttribute(b)
		if err != nil {
			return err
		}
		switch {
		case kind == attrInfo && s.State != tcp.Listen:
			decodeInfo(value, s)
		case kind == attrCgroup && len(value) >= 8:
			s.Cgroup = native.Uint64(value)
		}
		b = rest
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

// Offsets in struct tcp_info, with the kernel that added the field. The struct has only
// grown at its end.
const (
	infoLastDataSent  = unsafe.Offsetof(unix.TCPInfo{}.Last_data_sent)
	infoLastDataRecv  = unsafe.Offsetof(unix.TCPInfo{}.Last_data_recv)
	infoLastAckRecv   = unsafe.Offsetof(unix.TCPInfo{}.Last_ack_recv)
	infoBytesAcked    = unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked)    // 4.1
	infoBytesReceived = unsafe.Offsetof(unix.TCPInfo{}.Bytes_received) // 4.1
	infoSegsOut       = unsafe.Offsetof(unix.TCPInfo{}.Segs_out)       // 4.2
	infoNotSentBytes  = unsafe.Offsetof(unix.TCPInfo{}.Notsent_bytes)  // 4.6
	infoDataSegsIn    = unsafe.Offsetof(unix.TCPInfo{}.Data_segs_in)   // 4.6
	infoDataSegsOut   = unsafe.Offsetof(unix.TCPInfo{}.Data_segs_out)  // 4.6
	infoBytesSent     = unsafe.Offsetof(unix.TCPInfo{}.Bytes_sent)     // 4.19
	infoBytesRetrans  = unsafe.Offsetof(unix.TCPInfo{}.Bytes_retrans)  // 4.19
)

// decodeInfo sets Info from the part of struct tcp_info that the kernel knows. Before 4.1
// Info is not known: without bytes every connection would look unused. Before 4.19
// acknowledged bytes stand for sent bytes, or no request would ever seem answered; sent bytes
// not yet acknowledged are in Unsent.
func decodeInfo(b []byte, s *tcp.Socket) {
	if len(b) < int(infoBytesReceived)+8 {
		return
	}
	s.HasInfo = true
	s.Info = tcp.Info{
		LastSent:     milliseconds(b[infoLastDataSent:]),
		LastReceived: milliseconds(b[infoLastDataRecv:]),
		LastAcked:    milliseconds(b[infoLastAckRecv:]),
		PureACKs:     tcp.PureACKsUnknown,
		Acked:        native.Uint64(b[infoBytesAcked:]),
		Received:     native.Uint64(b[infoBytesReceived:]),
	}
	s.Info.Sent = s.Info.Acked
	if len(b) >= int(infoDataSegsOut)+4 {
		s.Info.NotSent = native.Uint32(b[infoNotSentBytes:])
		s.Info.Segments = native.Uint32(b[infoDataSegsIn:])
		s.Info.SentSegments = native.Uint32(b[infoDataSegsOut:])
		s.Info.PureACKs = native.Uint32(b[infoSegsOut:]) - s.Info.SentSegments
	}
	if len(b) >= int(infoBytesSent)+8 {
		s.Info.Sent = native.Uint64(b[infoBytesSent:])
	}
	if len(b) >= int(infoBytesRetrans)+8 {
		s.Info.Resent = native.Uint64(b[infoBytesRetrans:])
	}
}

func milliseconds(b []byte) time.Duration {
	return time.Duration(native.Uint32(b)) * time.Millisecond
}
