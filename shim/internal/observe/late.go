package observe

import (
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// FindLate adds new ports of the container to scope.Ports, found by the same method as at the
// trigger. Descriptors of processes are read only if a listener is new. Connections to a new
// port are new connections.
func (o *Observer) FindLate() {
	if len(o.facts.Given) > 0 {
		return
	}
	var unseen []tcp.Socket
	// A listener missed is in the next listing.
	_ = o.source.each(listenStates, nil, func(s *tcp.Socket) {
		if s.Inode != 0 && !o.seen[s.Inode] {
			unseen = append(unseen, *s)
		}
	})
	if len(unseen) == 0 {
		return
	}
	facts := o.facts
	facts.Listeners = unseen
	facts.Gather()
	found := scope.Decide(facts)
	if added := o.scope.Extend(&found); len(added) > 0 {
		o.latePorts = o.latePorts.Union(added)
		o.readEvents()
	}
	o.markSeen(unseen)
}

// markSeen notes listeners after the scope was found. Connections to one of a neighbor are in
// the kernel's counters.
func (o *Observer) markSeen(listeners []tcp.Socket) {
	for i := range listeners {
		l := &listeners[i]
		o.seen[l.Inode] = true
		if !o.scope.Ports.Has(l.Local.Port()) {
			o.opens.comparable = false
		}
	}
}

// PID1Serves reports whether PID 1 of the PID namespace is known to have one of the listeners. It is called
// before Continue.
func (s *Sampler) PID1Serves() (serves bool) {
	_, _ = proc.EachTarget(1, func(_ int, target []byte) {
		inode := scope.SocketInode(target)
		serves = serves || inode != 0 && s.observer.seen[inode]
	})
	return serves
}
