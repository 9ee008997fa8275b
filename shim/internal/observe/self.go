package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// self leaves out the connections of the container to itself. Connections of a neighbor
// in the same pod count, so the socket at the other end decides. If that socket is gone,
// such as that of an exec probe, the connection is our own if both ends have one address and
// nothing of another container is seen in the network namespace.
type self struct {
	isSelf       map[uint64]bool // decisions, by cookie
	accepted     int             // connections to ourselves so far
	neighborSeen bool            // a socket of another container was seen
	lookedAt     time.Time       // for such a socket, when last
	lookFailed   bool            // the last time
}

// lookInterval is the time between two searches for a neighbor, which read the descriptors of all
// processes.
const lookInterval = time.Second

// mayBeSelf reports whether both ends of a connection are on this machine.
func mayBeSelf(s *tcp.Socket) bool {
	return s.State != tcp.Listen && (s.Remote.Addr().IsLoopback() || s.Remote.Addr() == s.Local.Addr())
}

// otherEnds returns the sockets at the other ends of the deferred connections, by ConnKey, as
// far as in the same network namespace.
func (o *observer) otherEnds() (found map[uint64]tcp.Socket, err error) {
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
	q := sockdiag.Query{States: sockdiag.AllStates, Ports: tcp.PortSet(ports)}
	err = o.source.each(q, func(s *tcp.Socket) { found[traffic.ConnKey(s.Local, s.Remote)] = *s })
	o.scope.Learn(scope.HeldSockets("", o.late.query.WholePIDNamespace).Inodes)
	return found, err
}

// decide reports whether a connection is to ourselves: the other end is a socket of the
// container or of the health listener. A decision is final if it is, or if the other end was
// found.
func (o *observer) decide(near *tcp.Socket, otherEnds map[uint64]tcp.Socket) bool {
	other, found := otherEnds[traffic.ConnKey(near.Remote, near.Local)]
	isGone := other.Inode == 0 && near.Local.Addr() == near.Remote.Addr()
	isSelf := o.scope.Owns(&other) || o.proxied.has(near) || isGone && o.alone()
	if isSelf {
		o.self.accepted++
	}
	if len(o.self.isSelf) > 2*(o.sockets+manySockets) {
		clear(o.self.isSelf) // most are closed
	}
	if near.Cookie != 0 && (isSelf || found) {
		o.self.isSelf[near.Cookie] = isSelf
	}
	return isSelf
}

// wasSelf reports whether a closed connection was to ourselves.
func (o *observer) wasSelf(s *tcp.Socket) bool {
	isSelf, decided := o.self.isSelf[s.Cookie]
	if decided || !mayBeSelf(s) {
		return isSelf
	}
	return o.decide(s, nil)
}

// alone reports whether nothing of another container has been seen in the network namespace. A
// socket that was closed while descriptors were read belongs to nobody: two looks decide. A
// look fails at a process that must not be looked at, such as runc's while it enters the
// container for an exec probe, and is taken again: that process is soon gone.
func (o *observer) alone() bool {
	f := &o.self
	if !f.neighborSeen && time.Since(f.lookedAt) >= lookInterval {
		f.lookedAt = time.Now()
		first, err := o.foreign()
		second, secondErr := o.foreign()
		isIn := func(inode uint32) bool { return slices.Contains(first, inode) }
		f.lookFailed = cmp.Or(err, secondErr) != nil
		f.neighborSeen = !f.lookFailed && slices.ContainsFunc(second, isIn)
	}
	return !f.neighborSeen && !f.lookFailed
}

// foreign returns the inodes of sockets of other containers in the network namespace.
func (o *observer) foreign() ([]uint32, error) {
	var inodes []uint32
	q := sockdiag.Query{States: listenStates | openStates}
	err := o.source.each(q, func(s *tcp.Socket) { inodes = append(inodes, s.Inode) })
	if err != nil {
		return nil, err
	}
	return scope.Foreign(o.late.query, inodes)
}
