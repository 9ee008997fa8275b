package health

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ProxiedConn is a connection from the listener to the target. The command's socket
// has Target as its local address and Local as its remote address.
type ProxiedConn struct{ Local, Target netip.AddrPort }

// maxClosed is how many closed connections are remembered. If more connections are
// closed between two calls of Proxied, the oldest count as traffic.
const maxClosed = 512

// proxiedConns lists the connections to the target. The serving goroutine writes the
// list and the sampling goroutine reads the list, hence the mutex, held for
// microseconds by either.
type proxiedConns struct {
	mu     sync.Mutex
	open   map[int]ProxiedConn // by descriptor
	closed []closedConn        // in order
}

type closedConn struct {
	conn ProxiedConn
	at   time.Time
}

// connectTarget calls connect(2). The mutex is held meanwhile: a reader that has seen a
// connection in the kernel, and reads the list afterwards, finds the connection.
func (p *proxiedConns) connectTarget(fd int, to netip.AddrPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := unix.Connect(fd, sockaddr(to))
	p.open[fd] = ProxiedConn{Local: localAddress(fd), Target: to}
	return err
}

// markClosed records that a descriptor is closed.
func (p *proxiedConns) markClosed(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.closed) == maxClosed {
		p.closed = slices.Delete(p.closed, 0, 1)
	}
	p.closed = append(p.closed, closedConn{p.open[fd], time.Now()})
	delete(p.open, fd)
}

// Proxied appends to dst the connections to the target that were open at the given
// time or later. A caller that has seen sockets or destroy events, and then
// calls Proxied with the time of its previous call, gets all connections of the
// listener, however short, unless more than 512 were closed in between.
func (p *proxiedConns) Proxied(dst []ProxiedConn, since time.Time) []ProxiedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		dst = append(dst, conn)
	}
	for _, c := range p.closed {
		if !c.at.Before(since) {
			dst = append(dst, c.conn)
		}
	}
	return dst
}
