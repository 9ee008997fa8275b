package health

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection of lameduck's own to a server. The server's socket has Target as its local address
// and Local as its remote address.
type Conn struct{ Local, Target netip.AddrPort }

// maxClosed is how many closed connections are remembered. If more connections are
// closed between two calls of Since, the oldest count as traffic.
const maxClosed = 512

// Conns lists the connections to servers. A source address of their own would tell them, too, but not on
// ::1, and servers that allow 127.0.0.1 alone would refuse it. The goroutines of the listener and of Ask
// write the list and the sampling goroutine reads the list, hence the mutex, held for microseconds by each.
type Conns struct {
	Listener uint32 // inode of the listening socket, as /proc shows it; 0: none

	opens  atomic.Uint64
	mu     sync.Mutex
	open   map[int]Conn // by descriptor
	closed []closedConn // in order
}

type closedConn struct {
	conn Conn
	at   time.Time
}

// NewConns returns an empty list.
func NewConns() *Conns { return &Conns{open: map[int]Conn{}} }

// Opens returns how many connections the kernel counts as passive opens: those in the list, and
// those that a listener has accepted. The kernel counts each connection a moment earlier.
func (p *Conns) Opens() uint64 { return p.opens.Load() }

// connect calls connect(2). The mutex is held meanwhile: a reader that has seen a
// connection in the kernel, and reads the list afterwards, finds the connection.
func (p *Conns) connect(fd int, to unix.Sockaddr) error {
	if p == nil {
		return unix.Connect(fd, to)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := unix.Connect(fd, to)
	if err == nil {
		p.opens.Add(1)
	}
	p.open[fd] = Conn{Local: localAddress(fd), Target: addrPort(to)}
	return err
}

// noteClose notes that a descriptor is about to be closed.
func (p *Conns) noteClose(fd int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = append(p.closed[max(0, len(p.closed)+1-maxClosed):], closedConn{p.open[fd], time.Now()})
	delete(p.open, fd)
}

// Since appends to dst the connections that were open at the given time or later. A caller that has seen
// sockets or destroy events, and then calls Since with the time of its previous call, gets all
// connections of the listener, however short, unless more than 512 were closed in between.
func (p *Conns) Since(dst []Conn, at time.Time) []Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst = slices.AppendSeq(dst, maps.Values(p.open))
	for _, c := range p.closed {
		if !c.at.Before(at) {
			dst = append(dst, c.conn)
		}
	}
	return dst
}
