package sockdiag

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// eventsBuffer is how many bytes of events we would like the kernel to keep for
// us; without CAP_NET_ADMIN it is net.core.rmem_max, often 208 KiB. It takes
// memory only while there are events.
const eventsBuffer = 8 << 20

// mostEvents is how many events one Read takes, lest it never end.
const mostEvents = 1 << 16

// groups are the multicast groups that hear of destroyed TCP sockets (4.2).
const groups = 1<<(unix.SKNLGRP_INET_TCP_DESTROY-1) | 1<<(unix.SKNLGRP_INET6_TCP_DESTROY-1)

// Events hears of TCP sockets that are gone. It belongs to one goroutine at a
// time.
type Events struct {
	fd    int
	ports portSet
	buf   []byte
	sock  tcp.Socket
	drops uint32 // as the kernel counts them
}

// OpenEvents hears, from now on, of the sockets with one of these local ports;
// of all sockets if there are none. There are no events before Linux 4.2, and no
// error says so.
func OpenEvents(ports []uint16) (*Events, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	e := &Events{fd: fd, ports: newPortSet(nil, ports), buf: make([]byte, bufferLen)}
	if err := e.prepare(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return e, nil
}

// prepare joins the groups last: nothing may come in unfiltered.
func (e *Events) prepare() error {
	if unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, eventsBuffer) != nil {
		unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, eventsBuffer) // cut to what is allowed
	}
	if program := e.ports.filter(); program != nil {
		fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		if err := unix.SetsockoptSockFprog(e.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
			return fmt.Errorf("cannot filter socket events: %w", err)
		}
	}
	if err := unix.Bind(e.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		return fmt.Errorf("cannot join the groups of socket events: %w", err)
	}
	return nil
}

// Close leaves the groups.
func (e *Events) Close() error { return unix.Close(e.fd) }

// FD is the descriptor to poll: readable when Read has something to tell. A
// poller that sees POLLERR should call Read too: events were lost.
func (e *Events) FD() int { return e.fd }

// Read visits, without waiting, all events that are there; each is the last
// that is known of a socket: its cookie, its ends and its Info, with the state
// tcp.Close. What was sent and received is right, but of the rest little is:
// queues and ages of what never happened can be anything, and the remote port of
// a connection that was never accepted is 0. Whose it was is not told, neither by
// inode nor by control group. Listeners have events too, and so have sockets that
// were never connected. The socket that visit is given is valid until it returns.
// Lost is how many events came faster than they were read: one at least, if any.
func (e *Events) Read(visit func(*tcp.Socket)) (lost int, err error) {
	overrun, err := e.read(visit)
	if overrun {
		lost = e.lost()
	}
	return lost, err
}

func (e *Events) read(visit func(*tcp.Socket)) (overrun bool, err error) {
	for range mostEvents {
		n, err := receive(e.fd, e.buf, unix.MSG_DONTWAIT, time.Time{})
		switch {
		case err == unix.EAGAIN:
			return overrun, nil
		case err == unix.ENOBUFS:
			overrun = true // of what is lost until all is read the kernel says no more
			continue
		case err != nil:
			return overrun, fmt.Errorf("cannot read socket events: %w", err)
		}
		if err := e.take(e.buf[:n], visit); err != nil {
			return overrun, fmt.Errorf("cannot read socket events: %w", err)
		}
	}
	return overrun, nil
}

// lost is how many events were lost since it was last asked. The number is one of
// those in SO_MEMINFO (4.12); see sock_get_meminfo in net/core/sock.c.
func (e *Events) lost() int {
	const drops = 8 // SK_MEMINFO_DROPS
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(e.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 1
	}
	more := info[drops] - e.drops
	e.drops = info[drops]
	return max(int(more), 1)
}

// take visits the events of one datagram.
func (e *Events) take(b []byte, visit func(*tcp.Socket)) error {
	for len(b) > 0 {
		m, rest, err := next(b)
		if err != nil {
			return err
		}
		if m.kind == unix.SOCK_DIAG_BY_FAMILY {
			if err := visitOne(m, e.ports, &e.sock, visit); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}
