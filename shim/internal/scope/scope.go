package scope

import (
	"maps"
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Method is how the listeners were found, as in JSON.
type Method string

// The methods, best first.
const (
	Given       Method = "ports"       // the ports that the user named
	Cgroup      Method = "cgroup"      // sockets of our control group, and of our processes' descriptors
	Descriptors Method = "descriptors" // sockets of our processes' descriptors
	Namespace   Method = "namespace"   // all of the network namespace, neighbors' too
)

// Inodes is a set of sockets, by the inode numbers that /proc shows. 0 stands for none.
type Inodes map[uint32]bool

// Has reports whether the inode is in the set.
func (i Inodes) Has(inode uint32) bool { return inode != 0 && i[inode] }

// Scope is the set of listeners of this container.
type Scope struct {
	Method Method // how Ports were found

	Ports tcp.Ports // TCP
	UDP   tcp.Ports // unconnected sockets outside ip_local_port_range or, with nothing else in the lists, of any port

	// Unserved are the ports that the user named, if nothing listens on any of them: then all count.
	Unserved []uint16

	// Unseen names what may serve clients and cannot be observed: "Unix sockets"; and, if all lists are
	// empty, by Find, what is in no list: "vsock sockets", "another network namespace".
	Unseen []string

	// Complete means that all tables could be read: every listener of ours is in the
	// lists. If the descriptors of our processes could not be read, the lists have the
	// neighbors' listeners too: UDP and Unix always, TCP if Method is Namespace.
	Complete bool

	// Why is the first error that made the lists worse.
	Why error

	cgroup uint64 // of ours; up to rootCgroup it does not tell our sockets from others
	inodes Inodes
}

// NoListener reports whether the container certainly listens nowhere.
func (s *Scope) NoListener() bool {
	return s.Complete && len(s.Ports)+len(s.UDP)+len(s.Unseen) == 0
}

// Owns reports whether the socket is known to be ours. A socket made after Gather is known
// by its control group alone, until Learn adds its inode.
func (s *Scope) Owns(socket *tcp.Socket) bool {
	return s.cgroup > rootCgroup && socket.Cgroup == s.cgroup || s.inodes.Has(socket.Inode)
}

// Learn adds sockets of our processes that were found later.
func (s *Scope) Learn(more Inodes) {
	if s.inodes == nil {
		s.inodes = Inodes{}
	}
	maps.Copy(s.inodes, more)
}

// Extend adds what a later scope has found by the same method, and returns the ports that are
// new.
func (s *Scope) Extend(later *Scope) (added tcp.Ports) {
	added = slices.DeleteFunc(slices.Clone(later.Ports), s.Ports.Has)
	s.Ports = s.Ports.Union(added)
	s.Learn(later.inodes)
	return added
}
