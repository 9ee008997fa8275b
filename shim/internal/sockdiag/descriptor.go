package sockdiag

import (
	"unsafe"

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
	var info [unsafe.Sizeof(unix.TCPInfo{})]byte
	size := uint32(len(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return s, errno
	}
	s.State = tcp.State(info[0]) // tcpi_state
	decodeInfo(info[:size], &s)
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
