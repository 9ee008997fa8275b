package sockdiag

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ErrInterrupted is what Dump returns when all that was told has been visited,
// but the kernel says that sockets came and went meanwhile (NLM_F_DUMP_INTR):
// some may be missing.
var ErrInterrupted = errors.New("the sockets changed while they were listed")

// patience is how long a whole family may take, and each wait in it. The kernel
// answers while it is asked: it has never been seen to wait.
const patience = 10 * time.Second

// bufferLen is as much as the kernel puts into one answer; see netlink_dump in
// net/netlink/af_netlink.c.
const bufferLen = 32 << 10

// Conn asks the kernel. It belongs to one goroutine at a time.
type Conn struct {
	fd     int
	seq    uint32
	limit  time.Duration // how long a family may take
	unread bool          // an answer was given up on: the rest of it may be in the way
	ports  portSet
	buf    []byte
	sock   tcp.Socket
}

// Open opens a socket to ask with.
func Open() (*Conn, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	limit := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot limit the wait for sock_diag: %w", err)
	}
	// Connected to the kernel, whose port is 0, it takes nobody else's messages.
	if err := unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot connect to sock_diag: %w", err)
	}
	return &Conn{fd: fd, limit: patience, buf: make([]byte, bufferLen)}, nil
}

func socket() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, fmt.Errorf("cannot open a sock_diag socket: %w", err)
	}
	return fd, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// Dump visits the sockets that q describes, first those of AF_INET, then those
// of AF_INET6, with which come the IPv4 connections of a dual-stack listener.
// The socket that visit is given is valid until it returns. After an error some
// may have been visited; after ErrInterrupted nearly all have.
func (c *Conn) Dump(q Query, visit func(*tcp.Socket)) error {
	c.ports = newPortSet(c.ports, q.Ports)
	err4 := c.dump(unix.AF_INET, q, visit)
	if err4 != nil && !errors.Is(err4, ErrInterrupted) {
		return fmt.Errorf("cannot list IPv4 sockets: %w", err4)
	}
	switch err := c.dump(unix.AF_INET6, q, visit); err {
	case nil, unix.ENOENT, unix.EAFNOSUPPORT: // IPv6 is not there, while IPv4 is
		return err4
	case ErrInterrupted:
		return err
	default:
		return fmt.Errorf("cannot list IPv6 sockets: %w", err)
	}
}

// dump visits the sockets of one family.
func (c *Conn) dump(family uint8, q Query, visit func(*tcp.Socket)) error {
	deadline := time.Now().Add(c.limit)
	if c.unread {
		if err := c.discard(deadline); err != nil {
			return err
		}
	}
	c.seq++
	if err := send(c.fd, appendRequest(c.buf[:0], c.seq, family, q, c.ports), deadline); err != nil {
		return err
	}
	c.unread = true
	a := answer{seq: c.seq, ports: c.ports, sock: &c.sock, visit: visit}
	for !a.done {
		if time.Now().After(deadline) {
			return unix.ETIMEDOUT
		}
		n, err := receive(c.fd, c.buf, 0, deadline)
		if err != nil {
			return err
		}
		if err := a.take(c.buf[:n]); err != nil {
			return err
		}
	}
	c.unread = false
	return a.err()
}

// discard reads what is left of an earlier answer: before that, the kernel
// takes no other question (EBUSY).
func (c *Conn) discard(deadline time.Time) error {
	for time.Now().Before(deadline) {
		_, err := receive(c.fd, c.buf, unix.MSG_DONTWAIT, deadline)
		switch {
		case err == unix.EAGAIN:
			c.unread = false
			return nil
		case err != nil && err != unix.ENOBUFS && !errors.Is(err, ErrMalformed):
			return err
		}
	}
	return unix.ETIMEDOUT
}

// receive reads one datagram. It is an error where that does not fit, or where
// nothing came in time (ETIMEDOUT; EAGAIN for who does not wait). It makes the system call itself, since x/sys allocates
// the sender's address each time.
func receive(fd int, b []byte, flags int, deadline time.Time) (int, error) {
	wait := flags&unix.MSG_DONTWAIT == 0
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(flags|unix.MSG_TRUNC), 0, 0)
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
