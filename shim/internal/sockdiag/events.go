package sockdiag

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// eventBufferLen is the size of the receive buffer in bytes. Without CAP_NET_ADMIN the
// limit is net.core.rmem_max, often 208 KiB. Only queued events take memory.
const eventBufferLen = 8 << 20

// maxEvents is how many datagrams one Read reads, so that Read ends.
const maxEvents = 1 << 16

// destroyGroups are the multicast groups of destroyed TCP sockets (Linux 4.2).
const destroyGroups = 1<<(unix.SKNLGRP_INET_TCP_DESTROY-1) | 1<<(unix.SKNLGRP_INET6_TCP_DESTROY-1)

// Events receives an event for each destroyed TCP socket. An Events belongs to one
// goroutine at a time.
type Events struct {
	fd    int
	ports tcp.Ports
	buf   []byte
	sock  tcp.Socket
	drops uint32 // SK_MEMINFO_DROPS at the last call of newDrops
}

// OpenEvents returns an Events for sockets with one of the local ports, or for all
// sockets without ports, from now on. Linux sends no events before 4.2, and OpenEvents
// returns no error.
func OpenEvents(ports tcp.Ports) (*Events, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	e := &Events{fd: fd, buf: make([]byte, bufferLen)}
	if err := e.join(ports); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return e, nil
}

// SetPorts replaces the set of local ports by a larger set, which must not be empty.
// Queued events stay, and the kernel exchanges the filter at once: no event of the former
// ports is lost. See sk_attach_filter in net/core/filter.c.
func (e *Events) SetPorts(ports tcp.Ports) error {
	e.ports = ports
	program := socketFilter(ports)
	if program == nil {
		return nil
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.SetsockoptSockFprog(e.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog); err != nil {
		return fmt.Errorf("cannot filter socket events: %w", err)
	}
	return nil
}

// join joins the groups last, so that no event arrives unfiltered.
func (e *Events) join(ports tcp.Ports) error {
	if unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, eventBufferLen) != nil {
		unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, eventBufferLen) // the kernel reduces to the limit
	}
	if err := e.SetPorts(ports); err != nil {
		return err
	}
	if err := unix.Bind(e.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: destroyGroups}); err != nil {
		return fmt.Errorf("cannot join the multicast groups of socket events: %w", err)
	}
	return nil
}

// Close leaves the groups.
func (e *Events) Close() error { return unix.Close(e.fd) }

// FD returns the descriptor to poll: readable when events are queued. On POLLERR events
// were lost: call Read too.
func (e *Events) FD() int { return e.fd }

// Read visits all queued events without waiting. An event is the last state of a socket:
// cookie, both addresses and Info, with the state tcp.Close. Sent and Received are
// right. Queues are not, nor ages of events that never happened; inode and control group
// are missing; the remote port of a connection that was never accepted is 0. Listeners
// and sockets that were never connected have events too. The socket is valid until visit
// returns. The result lost is how many events the kernel dropped, at least 1 if any.
func (e *Events) Read(visit func(*tcp.Socket)) (lost int, err error) {
	for range maxEvents {
		n, err := receive(e.fd, e.buf, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			return lost, nil
		case err == unix.ENOBUFS:
			lost += e.newDrops() // reported once until the queue is empty
			continue
		case err == nil:
			err = e.parse(e.buf[:n], visit)
		}
		if err != nil {
			return lost, fmt.Errorf("cannot read socket events: %w", err)
		}
	}
	return lost, nil
}

// newDrops returns how many events were dropped since the last call, from SO_MEMINFO
// (Linux 4.12; see sock_get_meminfo in net/core/sock.c); 1 without SO_MEMINFO.
func (e *Events) newDrops() int {
	var info [unix.SK_MEMINFO_DROPS + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(e.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 1
	}
	drops := info[unix.SK_MEMINFO_DROPS]
	added := drops - e.drops
	e.drops = drops
	return max(int(added), 1)
}

// parse visits the sockets of one datagram.
func (e *Events) parse(b []byte, visit func(*tcp.Socket)) error {
	return eachMessage(b, func(m message) error {
		if m.kind != unix.SOCK_DIAG_BY_FAMILY {
			return nil
		}
		return visitSocket(m, e.ports, &e.sock, visit)
	})
}
