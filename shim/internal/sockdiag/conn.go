package sockdiag

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ErrInterrupted is returned by a complete Dump during which sockets came and went
// (NLM_F_DUMP_INTR): some may be missing.
var ErrInterrupted = errors.New("the sockets changed while they were listed")

// dumpTimeout limits the dump of one address family, and each wait. The kernel builds
// its reply within send(2) and recv(2), so no wait has been seen.
const dumpTimeout = 10 * time.Second

// bufferLen is the length of the longest datagram of a dump; see netlink_dump in
// net/netlink/af_netlink.c.
const bufferLen = 32 << 10

// Conn is a netlink socket for dumps. A Conn belongs to one goroutine at a time.
type Conn struct {
	fd           int
	seq          uint32
	timeout      time.Duration // for the dump of one family
	replyPending bool          // a dump was abandoned: its rest may still be queued
	ports        portSet
	buf          []byte
	sock         tcp.Socket
}

// Open returns a new Conn.
func Open() (*Conn, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	limit := unix.NsecToTimeval(int64(dumpTimeout))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot limit the wait for sock_diag: %w", err)
	}
	// Connected to the kernel (port 0), the socket receives no messages of other
	// processes.
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot connect to sock_diag: %w", err)
	}
	return &Conn{fd: fd, timeout: dumpTimeout, buf: make([]byte, bufferLen)}, nil
}

func newSocket() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, fmt.Errorf("cannot open a sock_diag socket: %w", err)
	}
	return fd, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Dump visits the sockets that match q: first AF_INET, then AF_INET6, including the IPv4
// connections of dual-stack listeners. The socket is valid until visit returns. After
// an error some sockets may have been visited; after ErrInterrupted nearly all.
func (c *Conn) Dump(q Query, visit func(*tcp.Socket)) error {
	c.ports = newPortSet(c.ports, q.Ports)
	err4 := c.dump(unix.AF_INET, q, visit)
	if err4 != nil && !errors.Is(err4, ErrInterrupted) {
		return fmt.Errorf("cannot list IPv4 sockets: %w", err4)
	}
	switch err := c.dump(unix.AF_INET6, q, visit); err {
	case nil, unix.ENOENT, unix.EAFNOSUPPORT: // a kernel without IPv6
		return err4
	case ErrInterrupted:
		return err
	default:
		return fmt.Errorf("cannot list IPv6 sockets: %w", err)
	}
}

// dump visits the sockets of one address family.
func (c *Conn) dump(family uint8, q Query, visit func(*tcp.Socket)) error {
	deadline := time.Now().Add(c.timeout)
	if err := c.discard(deadline); err != nil {
		return err
	}
	c.seq++
	if err := send(c.fd, appendRequest(c.buf[:0], c.seq, family, q, c.ports), deadline); err != nil {
		return err
	}
	c.replyPending = true
	r := reply{seq: c.seq, ports: c.ports, sock: &c.sock, visit: visit}
	for !r.done {
		if time.Now().After(deadline) {
			return unix.ETIMEDOUT
		}
		n, err := receive(c.fd, c.buf, 0, deadline)
		if err != nil {
			return err
		}
		if err := r.parse(c.buf[:n]); err != nil {
			return err
		}
	}
	c.replyPending = false
	if r.interrupted {
		return ErrInterrupted
	}
	return nil
}

// discard reads the rest of an abandoned dump, if any. Until then the kernel refuses another
// request (EBUSY).
func (c *Conn) discard(deadline time.Time) error {
	for c.replyPending {
		_, err := receive(c.fd, c.buf, unix.MSG_DONTWAIT, deadline)
		switch {
		case err == unix.EAGAIN:
			c.replyPending = false
		case err != nil && err != unix.ENOBUFS && !errors.Is(err, ErrMalformed):
			return err
		case time.Now().After(deadline):
			return unix.ETIMEDOUT
		}
	}
	return nil
}

// receive reads one datagram, and returns its length. A datagram longer than b is an
// error. Without a datagram in time the error is ETIMEDOUT, or EAGAIN with
// MSG_DONTWAIT. The raw system call saves the allocation of the sender's address in
// x/sys.
func receive(fd int, b []byte, flags int, deadline time.Time) (int, error) {
	wait := flags&unix.MSG_DONTWAIT == 0
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			uintptr(flags|unix.MSG_TRUNC), 0, 0)
		switch {
		case errno == unix.EINTR && (!wait || time.Now().Before(deadline)):
			continue
		case errno == unix.EINTR || errno == unix.EAGAIN && wait:
			return 0, unix.ETIMEDOUT
		case errno != 0:
			return 0, errno
		case int(n) > len(b):
			return 0, fmt.Errorf("%w: %d bytes, with room for %d", ErrMalformed, n, len(b))
		}
		return int(n), nil
	}
}

// send sends one datagram.
func send(fd int, b []byte, deadline time.Time) error {
	for {
		_, err := unix.Write(fd, b)
		if err != unix.EINTR || !time.Now().Before(deadline) {
			return err
		}
	}
}
