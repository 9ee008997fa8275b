package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// maxListInterval limits the time between two listings of the listeners.
const maxListInterval = time.Second

// late finds the ports that the server opens after the trigger.
type late struct {
	query    scope.Query     // of the trigger
	ports    scope.Ports     // the new ports
	seen     map[uint32]bool // inodes of listeners
	unseen   []tcp.Socket    // listeners of the current listing that are not in seen
	listedAt time.Time
	interval time.Duration // the time between two listings
}

// begin sets the listeners of the trigger. Every silence of quietFor has a listing.
func (l *late) begin(now time.Time, listeners []tcp.Socket, quietFor time.Duration) {
	l.interval = min(maxListInterval, quietFor/2)
	l.seen = map[uint32]bool{}
	l.listedAt = now
	for i := range listeners {
		l.seen[listeners[i].Inode] = true
	}
}

// due reports whether to list the listeners now.
func (l *late) due(now time.Time) bool {
	return len(l.query.Given) == 0 && now.Sub(l.listedAt) >= l.interval
}

// add notes a listener of the current listing.
func (l *late) add(s *tcp.Socket) {
	if s.Inode != 0 && !l.seen[s.Inode] {
		l.seen[s.Inode] = true
		l.unseen = append(l.unseen, *s)
	}
}

// findLate lists the listeners about once a second, and adds new ports of the container to
// scope.Ports, found by the same method as at the trigger. Descriptors of processes are
// read only if a listener is new. Connections to a new port are new connections.
func (o *observer) findLate(now time.Time) {
	if !o.late.due(now) {
		return
	}
	o.late.listedAt = now
	o.late.unseen = o.late.unseen[:0]
	o.source.eachListener(o.late.add) // a listener missed is in the next listing
	if len(o.late.unseen) == 0 {
		return
	}
	q := o.late.query
	q.Listeners = o.late.unseen
	found := scope.Decide(scope.Gather(q))
	for i := range o.late.unseen {
		port := o.late.unseen[i].Local.Port()
		if !found.Ports.Has(port) && !o.scope.Ports.Has(port) {
			o.opens.soleListener = false
		}
	}
	if added := o.scope.Extend(&found); len(added) > 0 {
		o.late.ports = o.late.ports.Union(added)
		o.observePorts()
	}
}
