package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ReadSocket returns the state of the TCP socket behind a descriptor: what a dump shows,
// without addresses, inode and control group. See tcp(7), SO_COOKIE in
// include/uapi/asm-generic/socket.h (Linux 4.12) and TCP_INFO.
func ReadSocket(fd int) (s tcp.Socket, err error) {
	s.Cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return s, err
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return s, err
	}
	s.State = tcp.State(info.State)
	setInfo(info, unix.SizeofTCPInfo, &s) // a kernel with pidfd_getfd(2), of version 5.6, knows all that is read
	// The queues come last: bytes that arrive meanwhile are in a queue.
	unread, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	if err != nil {
		return s, err
	}
	unsent, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	s.Unread = uint32(unread)
	s.Unsent = uint32(unsent)
	return s, err
}
