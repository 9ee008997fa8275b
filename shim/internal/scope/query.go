package scope

import (
	"cmp"
	"os"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Query is what the caller of Gather knows.
type Query struct {
	Proc procfs.Root

	Given     []uint16     // ports that the user named
	Listeners []tcp.Socket // of the network namespace, as the observer sees them
	Err       error        // why Listeners may not be complete
	Cgroup    uint64       // the id that a socket of our own shows; 0: unknown
	Shim      []uint32     // inodes of lameduck's own sockets; Gather finds sockets from descriptor 3 up

	// Connections lists the open connections of the network namespace. Find calls
	// Connections if no TCP listener is found; nil: not known.
	Connections func() ([]tcp.Socket, error)

	// WholePIDNamespace counts all processes of our PID namespace as ours, rather than
	// our descendants alone. PID 1 need not say so; a hook that runs beside the command
	// must.
	WholePIDNamespace bool
}

func (q *Query) wholePIDNamespace() bool { return q.WholePIDNamespace || os.Getpid() == 1 }

// Find gathers facts and decides. If no TCP listener was found, Find also looks for
// connections of a server that has closed its listeners, and, if no listener at all was
// found, for sockets that are in no table.
func Find(q Query) Scope {
	f := Gather(q)
	s := Decide(f)
	if len(s.Ports) == 0 && q.Connections != nil {
		connections, err := q.Connections()
		f.Connections = connections
		f.Err = cmp.Or(f.Err, err)
		s = Decide(f)
	}
	if s.NoListener() {
		f.Unseen = findUnseen(q, &f)
		s = Decide(f)
	}
	return s
}

// Foreign returns the inodes of sockets, of TCP as listed and of UDP, of which no process of
// ours has a descriptor: those of another container in the network namespace.
func Foreign(q Query, list func() ([]uint32, error)) (foreign []uint32, err error) {
	inodes, err := list()
	udp, udpErr := q.Proc.UDP()
	for i := range udp {
		inodes = append(inodes, udp[i].Inode)
	}
	held := HeldSockets(q.Proc, q.wholePIDNamespace())
	own, ownErr := OwnSockets(q.Proc)
	for _, inode := range inodes {
		if inode != 0 && !held.Inodes.Has(inode) && !own.Has(inode) {
			foreign = append(foreign, inode)
		}
	}
	return foreign, cmp.Or(err, udpErr, held.Err, ownErr)
}

// Gather collects the facts for Decide.
func Gather(q Query) Facts {
	f := Facts{
		Given:     q.Given,
		Listeners: q.Listeners,
		Err:       q.Err,
		Cgroups:   readCgroups(q.Proc, q.Cgroup),
		Held:      HeldSockets(q.Proc, q.wholePIDNamespace()),
	}
	// On an error our own listener, if we have one, counts as the command's: the hold may
	// then be too long, but never too short.
	f.Shim, _ = OwnSockets(q.Proc)
	for _, inode := range q.Shim {
		f.Shim[inode] = struct{}{}
	}
	var udp, unix error
	f.UDP, udp = q.Proc.UDP()
	f.Unix, unix = q.Proc.Unix()
	f.Err = cmp.Or(f.Err, udp, unix)
	f.Ephemeral, _ = q.Proc.LocalPorts() // if unknown, every port counts as a server's
	return f
}
