package scope

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Query is what the caller of Gather knows.
type Query struct {
	Proc procfs.Root

	Given     []uint16     // ports that the user named; if nobody serves any of them, all count
	Listeners []tcp.Socket // of the network namespace, as the observer sees them; sockets in other states are ignored
	Err       error        // why Listeners may not be complete
	Cgroup    uint64       // the id that a socket of our own shows; 0: unknown
	Listener  uint32       // inode of lameduck's own, 0: none; Gather finds the sockets from descriptor 3 up

	// Connections lists the open connections of the network namespace. Find calls
	// Connections if no TCP listener is found; nil: not known.
	Connections func() ([]tcp.Socket, error)

	// Namespace counts all listeners of the network namespace, whoever they belong to: for a
	// measure beside a server in another container.
	Namespace bool

	// WholePIDNamespace counts all processes of our PID namespace as ours, rather than
	// our descendants alone: for PID 1, and for a hook that runs beside the command.
	WholePIDNamespace bool
}

// Find gathers facts and decides. If no TCP listener was found, Find also looks for
// connections of a server that has closed its listeners, and, if no listener at all was
// found, for sockets that are in no table.
func Find(q Query) Scope {
	f := Gather(q)
	s := Decide(f)
	if q.Namespace {
		return s
	}
	if (len(s.Ports) == 0 || len(s.Unserved) > 0) && q.Connections != nil {
		open, err := q.Connections()
		f.Open = open
		f.Err = cmp.Or(f.Err, err)
		s = Decide(f)
	}
	if s.NoListener() {
		f.Unseen = findUnseen(&f)
		s = Decide(f)
	}
	return s
}

// Gather collects the facts for Decide.
func Gather(q Query) Facts {
	f := Facts{Query: q}
	f.Ephemeral = q.Proc.LocalPorts() // if unknown, every port counts as a server's
	if q.Namespace {
		return f
	}
	f.Cgroups, f.CgroupsErr = readCgroups(q.Proc, q.Cgroup)
	f.Held, f.HeldErr = HeldSockets(q.Proc, q.WholePIDNamespace)
	f.Shim = Inodes{q.Listener: true}
	// The descriptors below 3 are shared with the command. On an error our own sockets count as
	// the command's: the hold may then be too long, but never too short.
	_, _ = q.Proc.EachTarget(procfs.Self, func(fd int, target []byte) {
		if fd >= 3 {
			f.Shim[SocketInode(target)] = true
		}
	})
	var udp, unix error
	f.UDP, udp = q.Proc.UDP()
	f.Unix, unix = q.Proc.Unix()
	f.Err = cmp.Or(f.Err, udp, unix)
	return f
}
