package sockdiag

import (
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
	buf   [bufferLen]byte
	sock  tcp.Socket
}

// OpenEvents returns an Events for sockets with one of the local ports, or for all
// sockets without ports, from now on. Linux sends no events before 4.2, and OpenEvents
// returns no error.
func OpenEvents(ports tcp.Ports) (*Events, error) {
	fd, err := newSocket(unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, eventBufferLen) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, eventBufferLen) // the kernel reduces to the limit
	}
	e := &Events{fd: fd}
	err = e.SetPorts(ports)
	if err == nil { // the groups are joined last, so that no event arrives unfiltered
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: destroyGroups})
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// SetPorts replaces the set of local ports by a larger set.
// Queued events stay, and the kernel exchanges the filter at once: no event of the former
// ports is lost. See sk_attach_filter in net/core/filter.c.
func (e *Events) SetPorts(ports tcp.Ports) error {
	e.ports = ports
	program := socketFilter(ports)
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.SetsockoptSockFprog(e.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &fprog)
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
// returns. Read reports whether events were missed: the kernel has dropped some (ENOBUFS, once until the
// queue is empty), or Read has failed.
func (e *Events) Read(visit func(*tcp.Socket)) (missed bool) {
	events := reply{ports: e.ports, sock: &e.sock, visit: visit}
	for range maxEvents {
		n, err := receive(e.fd, e.buf[:])
		if err == unix.EAGAIN {
			break
		}
		if err == nil {
			err = events.parse(e.buf[:n])
		}
		missed = missed || err != nil
	}
	return missed
}
