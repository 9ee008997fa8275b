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

// healthListener is a health.Listener. Tests have another.
type healthListener interface {
	Inode() uint32
	Opens() uint64
	Proxied(dst []health.ProxiedConn, since time.Time) []health.ProxiedConn
}

// proxied knows the connections of the health listener to the command. Like all
// connections of lameduck, they do not count.
type proxied struct {
	listener  healthListener       // nil: health checks are not answered
	conns     []health.ProxiedConn // open in the latest sample, or closed within maxEventDelay before
	previous  []health.ProxiedConn // conns of the sample before
	sampledAt time.Time
	queues    []tcp.Socket // of the current sample: listeners whose accept queue may hold proxied connections
	opens     uint64       // of the listener, at the latest call of moved
	wasMoving bool         // health checks came, or were open, before that call
}

func newProxied(l *health.Listener) (p proxied) {
	if l != nil {
		p.listener = l
	}
	return p
}

// enabled reports whether there is a health listener.
func (p *proxied) enabled() bool { return p.listener != nil }

// passiveOpens returns how many of the namespace's PassiveOpens are of health checks.
func (p *proxied) passiveOpens() uint64 {
	if p.listener == nil {
		return 0
	}
	return p.listener.Opens()
}

func (p *proxied) beginSample() { p.queues = p.queues[:0] }

// defers reports whether a listener is not to be observed before update: its accept queue
// may hold proxied connections.
func (p *proxied) defers(s *tcp.Socket) bool {
	if p.listener == nil || s.State != tcp.Listen || s.Unread == 0 {
		return false
	}
	p.queues = append(p.queues, *s)
	return true
}

// update asks the health listener for its connections, after the sockets were listed: so
// none is missing. Then the deferred listeners are observed, without the new proxied
// connections in the accept queue, which the command may not have accepted yet. An older
// connection in the queue counts: the command no longer accepts.
func (p *proxied) update(now time.Time, observe func(*tcp.Socket)) {
	if p.listener == nil {
		return
	}
	since := p.sampledAt.Add(-maxEventDelay)
	if p.sampledAt.IsZero() {
		since = now.Add(-time.Minute)
	}
	p.previous = append(p.previous[:0], p.conns...)
	p.conns = p.listener.Proxied(p.conns[:0], since)
	p.sampledAt = now
	for i := range p.queues {
		queue := &p.queues[i]
		for _, c := range p.conns {
			if c.Target.Port() == queue.Local.Port() && !slices.Contains(p.previous, c) {
				queue.Unread -= min(queue.Unread, 1)
			}
		}
		observe(queue)
	}
}

// has reports whether a connection to the command is a proxied connection.
func (p *proxied) has(s *tcp.Socket) bool {
	return slices.Contains(p.conns, health.ProxiedConn{Local: s.Remote, Target: s.Local})
}

// moved reports whether health checks may have caused segments since the previous call.
// The kernel may send the segments that close a connection one interval later.
func (p *proxied) moved(now time.Time) bool {
	if p.listener == nil {
		return false
	}
	opens := p.listener.Opens()
	moving := opens != p.opens || len(p.listener.Proxied(nil, now)) > 0
	moved := moving || p.wasMoving
	p.opens = opens
	p.wasMoving = moving
	return moved
}
