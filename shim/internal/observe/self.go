package observe

import (
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// mayBeSelf reports whether both ends of a connection are on this machine, which proves nothing:
// kubectl port-forward, a neighbor in the pod and an exec probe come over loopback too. A
// connection is the container's own only if the socket at its other end is known to be, from a
// dump. That of a connection shorter than a sample is not known, so the connection counts: the
// event of its end (see sockdiag.Events) has neither a control group nor an inode.
func mayBeSelf(s *tcp.Socket) bool {
	return s.State != tcp.Listen && (s.Remote.Addr().IsLoopback() || s.Remote.Addr() == s.Local.Addr())
}

// otherEnds returns the sockets at the other ends of the deferred connections, by ConnKey, as
// far as in the same network namespace.
func (o *Observer) otherEnds() (found map[uint64]tcp.Socket, err error) {
	var ports []uint16
	for i := range o.deferred {
		if mayBeSelf(&o.deferred[i]) {
			ports = append(ports, o.deferred[i].Remote.Port())
		}
	}
	if len(ports) == 0 {
		return nil, nil
	}
	found = map[uint64]tcp.Socket{}
	err = o.source.each(sockdiag.AllStates, tcp.PortSet(ports), func(s *tcp.Socket) {
		found[s.Ends()] = *s
	})
	o.learnHeld()
	return found, err
}

// learnHeld finds the sockets that our processes have opened since.
func (o *Observer) learnHeld() {
	held, _ := scope.HeldSockets("", o.facts.WholePIDNamespace)
	o.scope.Learn(held)
}

// decide returns whose business a socket is, and decides whether a connection is to ourselves, for the ledger
// and the counters: the other end is a socket of the container or lameduck's own. The decision is final if it
// is, or if the other end was found.
func (o *Observer) decide(near *tcp.Socket, otherEnds map[uint64]tcp.Socket) ledger.Side {
	side, isKnown := o.side(near)
	if isKnown {
		return side
	}
	other, found := otherEnds[tcp.ConnKey(near.Remote, near.Local)]
	isSelf := o.scope.Owns(&other) || o.own.has(near)
	if isSelf || found {
		o.ledger.Decide(near, isSelf)
	}
	if isSelf {
		o.opens.toSelf++
		return ledger.Own
	}
	return side
}
