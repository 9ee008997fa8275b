package health

import (
	"net/netip"
	"sync"
	"time"
)

// ProxiedConn is a connection from the listener to the target. The command's socket
// has Target as its local address and Local as its remote address.
type ProxiedConn struct{ Local, Target netip.AddrPort }

func (c ProxiedConn) isZero() bool { return c.Local.Port() == 0 }

// maxClosed is how many closed connections are remembered. If more connections are
// closed between two calls of Proxied, the oldest count as traffic.
const maxClosed = 512

// proxiedConns lists the connections to the target. The serving goroutine writes the
// list and the sampling goroutine reads the list, hence the mutex, held for
// microseconds by either. The mutex is held while a connection is made: a reader that
// has seen a connection in the kernel, and reads the list afterwards, finds the
// connection.
type proxiedConns struct {
	mu     sync.Mutex
	open   [clientSlots]ProxiedConn
	closed [maxClosed]closedConn // a ring
	next   int                   // the next index in closed
}

type closedConn struct {
	conn ProxiedConn
	at   time.Time
}

// add lists the connection that dial makes for a client slot.
func (p *proxiedConns) add(slot int, dial func() (ProxiedConn, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn, err := dial()
	if err == nil {
		p.open[slot] = conn
	}
	return err
}

// markClosed records that the slot's connection, if any, is closed.
func (p *proxiedConns) markClosed(slot int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[slot].isZero() {
		return
	}
	p.closed[p.next] = closedConn{p.open[slot], now}
	p.next = (p.next + 1) % maxClosed
	p.open[slot] = ProxiedConn{}
}

// since appends to dst the connections that are open, or were closed at or after
// the given time.
func (p *proxiedConns) since(dst []ProxiedConn, start time.Time) []ProxiedConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.open {
		if !conn.isZero() {
			dst = append(dst, conn)
		}
	}
	for i := range p.closed {
		c := &p.closed[i]
		if !c.conn.isZero() && !c.at.Before(start) {
			dst = append(dst, c.conn)
		}
	}
	return dst
}
