package health

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// ProxiedConn is a connection of lameduck's own to the command. The command's socket
// has Target as its local address and Local as its remote address.
type ProxiedConn struct{ Local, Target netip.AddrPort }

// maxClosed is how many closed connections are remembered. If more connections are
// closed between two calls of Proxied, the oldest count as traffic.
const maxClosed = 512

// Conns lists the connections to the command: of the listener, and of Ask. Their goroutines
// write the list and the sampling goroutine reads the list, hence the mutex, held for
// microseconds by each.
type Conns struct {
	Listener uint32 // inode of the listening socket, as /proc shows it; 0: none

	opens  atomic.Uint64
	mu     sync.Mutex
	open   map[int]ProxiedConn // by descriptor
	closed []closedConn        // in order
}

// NewConns returns an empty list.
func NewConns() *Conns { return &Conns{open: map[int]ProxiedConn{}} }

// Opens returns how many connections the kernel counts as passive opens: those in the list, and
// those that a listener has accepted. The kernel counts each connection a moment earlier.
func (p *Conns) Opens() uint64 { return p.opens.Load() }

type closedConn struct {
	conn ProxiedConn
	at   time.Time
}

// connectTarget calls connect(2). The mutex is held meanwhile: a reader that has seen a
// connection in the kernel, and reads the list afterwards, finds the connection.
func (p *Conns) connectTarget(fd int, to netip.AddrPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := unix.Connect(fd, sockaddr(to))
	if err == nil {
		p.opens.Add(1)
	}
	p.open[fd] = ProxiedConn{Local: localAddress(fd), Target: to}
	return err
}

// markClosed records that a descriptor is about to be closed.
func (p *Conns) markClosed(fd int) {
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
func (p *Conns) Proxied(dst []ProxiedConn, since time.Time) []ProxiedConn {
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
