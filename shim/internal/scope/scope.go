package scope

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Method is how the listeners were found.
type Method uint8

// The methods, best first.
const (
	Given       Method = 1 + iota // the ports that the user named
	Cgroup                        // our control group's, and what our processes hold
	Descriptors                   // what our processes hold
	Namespace                     // all of the network namespace, neighbours' too
)

// String is the method in words for people.
func (m Method) String() string {
	switch m {
	case Given:
		return "the ports given"
	case Cgroup:
		return "our control group"
	case Descriptors:
		return "our processes' descriptors"
	case Namespace:
		return "the network namespace"
	}
	return "no method"
}

// Name returns the method as JSON output has the method, "" for the zero value.
func (m Method) Name() string {
	switch m {
	case Given:
		return "ports"
	case Cgroup:
		return "cgroup"
	case Descriptors:
		return "descriptors"
	case Namespace:
		return "namespace"
	}
	return ""
}

// Ports are TCP or UDP ports in ascending order, each once.
type Ports []uint16

// Has reports whether the port is one of them.
func (p Ports) Has(port uint16) bool {
	_, found := slices.BinarySearch(p, port)
	return found
}

// newPorts sorts the ports, which it keeps.
func newPorts(ports []uint16) Ports {
	slices.Sort(ports)
	return slices.Compact(ports)
}

// Inodes are sockets by the numbers that /proc shows.
type Inodes map[uint32]struct{}

// Has reports whether the inode is one of them. No socket has inode 0.
func (i Inodes) Has(inode uint32) bool {
	_, found := i[inode]
	return found && inode != 0
}

// Scope is what this container listens on.
type Scope struct {
	Method Method // how Ports were found

	Ports Ports    // TCP
	UDP   Ports    // unconnected sockets outside ip_local_port_range
	Unix  []string // paths, in ascending order, of any bytes

	// Complete says that all tables could be read: there is no listener of ours
	// that is not in the lists. Where our processes could not be looked at, the
	// lists have the neighbours' listeners too: UDP and Unix whenever
	// that is so, TCP where Method is Namespace.
	Complete bool

	// Why is the first thing that could not be looked at, where it mattered.
	Why error

	cgroups map[uint64]struct{}
	inodes  Inodes
}

// NoListener reports whether it is certain that the container listens nowhere.
func (s *Scope) NoListener() bool {
	return s.Complete && len(s.Ports) == 0 && len(s.UDP) == 0 && len(s.Unix) == 0
}

// Owns reports whether the socket is known to be ours. Of one that was made
// after the look only the control group can tell; see Learn.
func (s *Scope) Owns(socket *tcp.Socket) bool {
	_, ours := s.cgroups[socket.Cgroup]
	return ours || s.inodes.Has(socket.Inode)
}

// Learn adds sockets that our processes were found to hold later.
func (s *Scope) Learn(more Inodes) {
	if s.inodes == nil {
		s.inodes = Inodes{}
	}
	for inode := range more {
		s.inodes[inode] = struct{}{}
	}
}

// Self reports whether a connection to one of our ports comes from ourselves;
// near and far are the sockets at its ends.
func (s *Scope) Self(near, far *tcp.Socket) bool {
	return s.Ports.Has(near.Local.Port()) && near.Local == far.Remote && near.Remote == far.Local && s.Owns(far)
}
