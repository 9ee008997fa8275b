package scope

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// diag lists the IPv4 listeners with their control groups, by sock_diag(7).
func diag() (found []tcp.Socket, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	request := make([]byte, 16+56) // struct nlmsghdr, struct inet_diag_req_v2
	native := binary.NativeEndian
	native.PutUint32(request, uint32(len(request)))
	native.PutUint16(request[4:], 20) // SOCK_DIAG_BY_FAMILY
	native.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request[16], request[17] = unix.AF_INET, unix.IPPROTO_TCP
	native.PutUint32(request[20:], 1<<tcp.Listen)
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	answer := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(fd, answer, 0)
		if err != nil {
			return nil, err
		}
		for rest := answer[:n]; len(rest) >= 16; {
			length := native.Uint32(rest)
			switch native.Uint16(rest[4:]) {
			case unix.NLMSG_DONE:
				return found, nil
			case unix.NLMSG_ERROR:
				return nil, unix.Errno(-int32(native.Uint32(rest[16:])))
			}
			found = append(found, listenerOf(rest[16:length]))
			rest = rest[(length+3)&^3:]
		}
	}
}

// listenerOf reads a struct inet_diag_msg and the attribute INET_DIAG_CGROUP_ID.
func listenerOf(msg []byte) tcp.Socket {
	s := tcp.Socket{
		State: tcp.State(msg[1]),
		Local: netip.AddrPortFrom(netip.AddrFrom4([4]byte(msg[8:12])), binary.BigEndian.Uint16(msg[4:])),
		Inode: binary.NativeEndian.Uint32(msg[68:]),
	}
	for attrs := msg[72:]; len(attrs) >= 4; {
		length := binary.NativeEndian.Uint16(attrs)
		if binary.NativeEndian.Uint16(attrs[2:]) == 21 {
			s.Cgroup = binary.NativeEndian.Uint64(attrs[4:])
		}
		attrs = attrs[min(int(length+3)&^3, len(attrs)):]
	}
	return s
}
