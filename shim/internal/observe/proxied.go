package observe

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// maxEventDelay is how long after the end of a connection the kernel may report the event:
// events have low priority.
const maxEventDelay = 5 * time.Second

// ownConns is a health.Conns. Tests have another.
type ownConns interface {
	Opens() uint64
	Proxied(dst []health.ProxiedConn, since time.Time) []health.ProxiedConn
}

// proxied knows the connections of lameduck's own to the command, which do not count: health
// checks that are passed on, and requests.
type proxied struct {
	own       ownConns             // nil: none
	conns     []health.ProxiedConn // open in the latest sample, or closed within maxEventDelay before
	previous  []health.ProxiedConn // conns of the sample before
	sampledAt time.Time
	opens     uint64 // of the listener, in the latest sample
	moving    bool   // health checks came, or were open, in the latest sample
}

// defers reports whether a socket is a listener whose accept queue may hold proxied
// connections.
func (p *proxied) defers(s *tcp.Socket) bool {
	return p.own != nil && s.State == tcp.Listen && s.Unread > 0
}

// update asks for the connections, after the sockets were listed: so
// none is missing. The result is whether health checks may have caused segments since the
// previous sample; the kernel may send those that close a connection one interval later.
func (p *proxied) update(now time.Time) (moved bool) {
	if p.own == nil {
		return false
	}
	opens := p.own.Opens()
	moving := opens != p.opens || len(p.own.Proxied(nil, now)) > 0
	moved = moving || p.moving
	p.moving = moving
	p.opens = opens
	p.previous, p.conns = p.conns, p.own.Proxied(p.previous[:0], p.sampledAt.Add(-maxEventDelay))
	p.sampledAt = now
	return moved
}

// discount takes the new proxied connections out of an accept queue: the command may not have
// accepted them yet. An older connection in the queue counts: the command no longer accepts.
func (p *proxied) discount(queue *tcp.Socket) {
	for _, c := range p.conns {
		if c.Target.Port() == queue.Local.Port() && !slices.Contains(p.previous, c) {
			queue.Unread -= min(queue.Unread, 1)
		}
	}
}

// has reports whether a connection to the command is a proxied connection.
func (p *proxied) has(s *tcp.Socket) bool {
	return slices.Contains(p.conns, health.ProxiedConn{Local: s.Remote, Target: s.Local})
}
