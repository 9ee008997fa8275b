package sockdiag

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ErrInterrupted is returned by a complete Dump during which sockets came and went
// (NLM_F_DUMP_INTR): some may be missing.
var ErrInterrupted = errors.New("the sockets changed while they were listed")

// dumpTimeout limits each wait for the kernel, which builds its reply within send(2) and
// recv(2): no wait has been seen.
const dumpTimeout = 10 * time.Second

// bufferLen is the length of the longest datagram of a dump; see netlink_dump in
// net/netlink/af_netlink.c.
const bufferLen = 32 << 10

// Conn is a netlink socket for dumps. A Conn belongs to one goroutine at a time.
type Conn struct {
	fd           int
	replyPending bool // a dump was abandoned: its rest may still be queued
	buf          []byte
	sock         tcp.Socket
}

// Open returns a new Conn.
func Open() (*Conn, error) {
	c := &Conn{fd: -1, buf: make([]byte, bufferLen)}
	if err := c.reopen(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// reopen opens the socket, in place of the one that is open.
func (c *Conn) reopen() (err error) {
	c.Close()
	c.fd, err = newSocket(0)
	if err != nil {
		return err
	}
	limit := unix.NsecToTimeval(int64(dumpTimeout))
	err = unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit)
	// Connected to the kernel (port 0), the socket receives no messages of other
	// processes.
	return cmp.Or(err, unix.Connect(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

func newSocket(flags int) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, unix.NETLINK_SOCK_DIAG)
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

// dump visits the sockets of one address family. The kernel takes no request before an
// abandoned reply has been read (EBUSY), so the socket is then opened anew.
func (c *Conn) dump(family uint8, q Query, visit func(*tcp.Socket)) error {
	if c.replyPending {
		if err := c.reopen(); err != nil {
			return err
		}
	}
	c.replyPending = true
	if _, err := unix.Write(c.fd, newRequest(c.buf, family, q)); err != nil {
		return err
	}
	r := reply{ports: q.Ports, sock: &c.sock, visit: visit}
	for !r.done {
		n, err := receive(c.fd, c.buf)
		if err == unix.EAGAIN {
			return unix.ETIMEDOUT
		}
		if err != nil {
			return err
		}
		err = r.parse(c.buf[:n])
		c.replyPending = !r.done
		if err != nil {
			return err
		}
	}
	if r.interrupted {
		return ErrInterrupted
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
