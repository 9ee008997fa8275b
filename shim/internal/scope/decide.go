package scope

import (
	"cmp"
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Decide makes a scope of the facts.
func Decide(f Facts) Scope {
	s := Scope{Complete: f.Err == nil, Why: f.Err, cgroup: f.Cgroup}
	s.Learn(f.Held)
	s.Learn(f.Shim) // lameduck's connection to the command is ours at both ends
	s.Method = f.method()
	counts := func(c *tcp.Socket) bool { return !f.Shim.Has(c.Inode) && (s.Method == Namespace || s.Owns(c)) }
	accepted := func(c *tcp.Socket) bool { return counts(c) && !f.Ephemeral.Has(c.Local.Port()) }
	// A listener of the network namespace on loopback that got its port from the kernel is a helper's, not a
	// server's: Docker's resolver at 127.0.0.11 outlives the server.
	listens := func(c *tcp.Socket) bool {
		isHelper := f.Namespace && c.Local.Addr().IsLoopback() && f.Ephemeral.Has(c.Local.Port())
		return counts(c) && !isHelper
	}
	if s.Method == Given {
		s.Ports = tcp.PortSet(slices.Clone(f.Given))
	} else {
		s.Unserved = f.Given
		s.Ports = portsOf(f.Listeners, listens)
	}
	if len(s.Ports) == 0 && f.Ephemeral != (procfs.PortRange{}) {
		// The server may have closed its listeners before. Clients use ephemeral ports.
		s.Ports = portsOf(f.Open, accepted)
	}
	s.UDP = f.udp(false)
	s.Unseen = f.Unseen
	if slices.ContainsFunc(f.Unix, f.ours) {
		s.Unseen = append([]string{"Unix sockets"}, f.Unseen...)
	}
	if s.NoListener() {
		s.UDP = f.udp(true) // a server may use an ephemeral port, but so do clients
	}
	if s.Method == Namespace || len(s.UDP)+len(s.Unseen) > 0 {
		s.Why = cmp.Or(s.Why, f.HeldErr)
	}
	return s
}

// method returns the best method that the facts allow.
func (f *Facts) method() Method {
	// Listeners from /proc/net have no control group, and would look like a neighbor's.
	isUnknown := func(s tcp.Socket) bool { return s.Cgroup == 0 }
	known := f.Cgroup > rootCgroup && !slices.ContainsFunc(f.Listeners, isUnknown)
	switch {
	case len(f.Given) > 0 && (f.Namespace || f.Err != nil || f.servesGiven()):
		return Given
	case f.Namespace:
		return Namespace
	case known && (f.CgroupErr == nil || f.HeldErr == nil):
		return Cgroup
	case f.HeldErr == nil:
		return Descriptors
	}
	return Namespace
}

// servesGiven reports whether anything listens on one of the given ports, or has connections there.
func (f *Facts) servesGiven() bool {
	isServed := func(s tcp.Socket) bool { return slices.Contains(f.Given, s.Local.Port()) }
	return slices.ContainsFunc(f.Listeners, isServed) || slices.ContainsFunc(f.Open, isServed)
}

// portsOf returns the local ports of the sockets that count.
func portsOf(sockets []tcp.Socket, counts func(*tcp.Socket) bool) tcp.Ports {
	var ports []uint16
	for i := range sockets {
		if counts(&sockets[i]) {
			ports = append(ports, sockets[i].Local.Port())
		}
	}
	return tcp.PortSet(ports)
}

// ours reports whether a socket may be ours, by its inode alone.
func (f *Facts) ours(inode uint32) bool {
	return !f.Shim.Has(inode) && (f.HeldErr != nil || f.Held.Has(inode))
}

// udp returns the ports of unconnected UDP sockets that may be ours, ephemeral ports only
// if wanted.
func (f *Facts) udp(ephemeral bool) tcp.Ports {
	return portsOf(f.UDP, func(s *tcp.Socket) bool {
		return f.ours(s.Inode) && (ephemeral || !f.Ephemeral.Has(s.Local.Port()))
	})
}
