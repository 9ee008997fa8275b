package sockdiag

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// dumpTimeout limits each wait for the kernel, which builds its reply within send(2) and
// recv(2): no wait has been seen.
const dumpTimeout = 2 * time.Second

// bufferLen is the length of the longest datagram of a dump; see netlink_dump in
// net/netlink/af_netlink.c.
const bufferLen = 32 << 10

// Lister lists sockets. It has the memory for a dump, and belongs to one goroutine at a time.
type Lister struct {
	buf  [bufferLen]byte
	sock tcp.Socket
}

// Dump visits the sockets in these states, with a local port in ports, if there is any: first AF_INET, then
// AF_INET6, including the IPv4 connections of dual-stack listeners. The socket is valid until visit returns. After
// an error some sockets may have been visited. Each dump has a netlink socket of its own: the kernel
// takes no request on one with the rest of an abandoned reply.
func (l *Lister) Dump(states States, ports tcp.Ports, visit func(*tcp.Socket)) error {
	fd, err := connect()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return l.dumpOn(fd, states, ports, visit)
}

// connect returns a netlink socket. Connected to the kernel (port 0), the socket receives no messages of
// other processes.
func connect() (fd int, err error) {
	fd, err = newSocket(0)
	if err != nil {
		return -1, err
	}
	limit := unix.NsecToTimeval(int64(dumpTimeout))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	if err == nil {
		err = unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}

func newSocket(flags int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, fmt.Errorf("cannot open a sock_diag socket: %w", err)
	}
	return fd, nil
}

// dumpOn visits the sockets of both address families.
func (l *Lister) dumpOn(fd int, states States, ports tcp.Ports, visit func(*tcp.Socket)) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		_, err := unix.Write(fd, newRequest(l.buf[:0], family, states, ports))
		r := reply{ports: ports, sock: &l.sock, visit: visit}
		for err == nil && !r.done {
			var n int
			n, err = receive(fd, l.buf[:])
			if err == nil {
				err = r.parse(l.buf[:n])
			}
		}
		isMissing := err == unix.ENOENT || err == unix.EAFNOSUPPORT
		if err != nil && !(isMissing && family == unix.AF_INET6) { // else a kernel without IPv6
			return fmt.Errorf("cannot list sockets: %w", err)
		}
	}
	return nil
}

// receive reads one datagram, and returns its length. Without a datagram in time the error is EAGAIN.
// recvfrom(2) would tell whether the datagram is longer than b, which none is; that of x/sys allocates the
// sender's address.
func receive(fd int, b []byte) (n int, err error) {
	for {
		n, err = unix.Read(fd, b)
		if err != unix.EINTR { // a forwarded signal
			return n, err
		}
	}
}
