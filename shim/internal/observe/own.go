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
	Since(dst []health.Conn, at time.Time) []health.Conn
}

// own knows the connections of lameduck's own to the command, which do not count: health
// checks that are passed on, and requests.
type own struct {
	all       ownConns
	conns     []health.Conn // open in the latest sample, or closed within maxEventDelay before
	previous  []health.Conn // conns of the sample before
	sampledAt time.Time
	opens     uint64 // in the latest sample
}

// update asks for the connections, after the sockets were listed: so none is missing. The result is
// whether they may have caused segments since the previous sample.
func (o *own) update(now time.Time) (moved bool) {
	opens := o.all.Opens()
	moved = opens != o.opens || len(o.all.Since(nil, o.sampledAt)) > 0
	o.opens = opens
	o.previous, o.conns = o.conns, o.all.Since(o.previous[:0], o.sampledAt.Add(-maxEventDelay))
	o.sampledAt = now
	return moved
}

// discount takes the new own connections out of an accept queue: the command may not have
// accepted them yet. An older connection in the queue counts: the command no longer accepts.
func (o *own) discount(queue *tcp.Socket) {
	for _, c := range o.conns {
		if c.Target.Port() == queue.Local.Port() && !slices.Contains(o.previous, c) {
			queue.Unread -= min(queue.Unread, 1)
		}
	}
}

// has reports whether a connection to the command is one of ours.
func (o *own) has(s *tcp.Socket) bool {
	return slices.Contains(o.conns, health.Conn{Local: s.Remote, Target: s.Local})
}
