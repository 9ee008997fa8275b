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

// The lengths of struct inet_diag_msg and of struct inet_diag_sockid in it.
const (
	socketLen   = 72
	socketIDLen = 48
)

// Attributes of a socket: INET_DIAG_INFO and INET_DIAG_CGROUP_ID (5.8).
const (
	attrInfo   = 2
	attrCgroup = 21
)

// decode sets all of s from a struct inet_diag_msg and its attributes. A zone
// of an address is left out.
func decode(payload []byte, s *tcp.Socket) error {
	*s = tcp.Socket{}
	if len(payload) < socketLen {
		return fmt.Errorf("%w: %d bytes of a socket", ErrMalformed, len(payload))
	}
	family, id, queues := payload[0], payload[4:4+socketIDLen], payload[4+socketIDLen:socketLen]
	var ok bool
	if s.Local, ok = addrPort(family, id[4:20], id[0:2]); !ok {
		return fmt.Errorf("%w: a socket of family %d", ErrMalformed, family)
	}
	s.Remote, _ = addrPort(family, id[20:36], id[2:4])
	s.State = tcp.State(payload[1])
	s.Cookie = uint64(native.Uint32(id[40:])) | uint64(native.Uint32(id[44:]))<<32
	s.Unread = native.Uint32(queues[4:]) // behind idiag_expires
	s.Unsent = native.Uint32(queues[8:])
	s.Inode = native.Uint32(queues[16:])
	err := decodeAttributes(payload[socketLen:], s)
	s.DiscountFIN()
	return err
}

// decodeAttributes sets what the attributes tell. Those that are not known, or shorter than
// they should be, are left out.
func decodeAttributes(b []byte, s *tcp.Socket) error {
	for len(b) > 0 {
		kind, value, rest, err := attribute(b)
		if err != nil {
			return err
		}
		switch {
		case kind == attrInfo && s.State != tcp.Listen: // nothing in it that means anything
			decodeInfo(value, s)
		case kind == attrCgroup && len(value) >= 8:
			s.Cgroup = native.Uint64(value)
		}
		b = rest
	}
	return nil
}

// addrPort is one end of a socket.
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

// Where things are in struct tcp_info, which has only ever grown at its end.
const (
	infoLastSent     = unsafe.Offsetof(unix.TCPInfo{}.Last_data_sent)
	infoLastReceived = unsafe.Offsetof(unix.TCPInfo{}.Last_data_recv)
	infoLastAcked    = unsafe.Offsetof(unix.TCPInfo{}.Last_ack_recv)
	infoAcked        = unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked)    // 4.1
	infoReceived     = unsafe.Offsetof(unix.TCPInfo{}.Bytes_received) // 4.1
	infoSegmentsSent = unsafe.Offsetof(unix.TCPInfo{}.Segs_out)       // 4.2
	infoSegments     = unsafe.Offsetof(unix.TCPInfo{}.Data_segs_in)   // 4.6
	infoDataSent     = unsafe.Offsetof(unix.TCPInfo{}.Data_segs_out)  // 4.6
	infoSent         = unsafe.Offsetof(unix.TCPInfo{}.Bytes_sent)     // 4.19
)

// decodeInfo sets Info from as much of a struct tcp_info as the kernel knew.
// Where it did not tell what was sent, what was acknowledged stands for it, or
// nothing would ever seem to have been answered; the rest of it is in Unsent.
func decodeInfo(b []byte, s *tcp.Socket) {
	if len(b) < int(infoLastAcked)+4 {
		return
	}
	s.HasInfo = true
	s.Info = tcp.Info{
		LastSent:     milliseconds(b[infoLastSent:]),
		LastReceived: milliseconds(b[infoLastReceived:]),
		LastAcked:    milliseconds(b[infoLastAcked:]),
		PureACKs:     tcp.PureACKsUnknown,
	}
	if len(b) >= int(infoReceived)+8 {
		s.Info.Acked = native.Uint64(b[infoAcked:])
		s.Info.Received = native.Uint64(b[infoReceived:])
		s.Info.Sent = s.Info.Acked
	}
	if len(b) >= int(infoDataSent)+4 {
		s.Info.Segments = native.Uint32(b[infoSegments:])
		s.Info.PureACKs = native.Uint32(b[infoSegmentsSent:]) - native.Uint32(b[infoDataSent:])
	}
	if len(b) >= int(infoSent)+8 {
		s.Info.Sent = native.Uint64(b[infoSent:])
	}
}

func milliseconds(b []byte) time.Duration {
	return time.Duration(native.Uint32(b)) * time.Millisecond
}
