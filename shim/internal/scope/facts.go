package scope

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Facts are the input of Decide.
type Facts struct {
	// What the caller of Find knows.
	Given     []uint16     // ports that the user named; if nobody serves any of them, all count
	Listeners []tcp.Socket // of the network namespace, as the observer sees them
	Err       error        // why Listeners, or a table that was read since, may not be complete
	Cgroup    uint64       // the id that a socket of our own shows; 0: unknown
	Listener  uint32       // inode of lameduck's own, 0: none; Gather finds the sockets from descriptor 3 up

	// Namespace counts all listeners of the network namespace, whoever they belong to: for a
	// measure beside a server in another container.
	Namespace bool

	// WholePIDNamespace counts all processes of our PID namespace as ours, rather than
	// our descendants alone: for PID 1, and for a hook that runs beside the command.
	WholePIDNamespace bool

	// By Gather. Each Err is the reason why a part may not be complete.
	Ephemeral procfs.PortRange // ports that the kernel hands out
	UDP       []tcp.Socket
	Unix      []uint32 // inodes of listeners
	Shim      Inodes   // lameduck's own sockets; they never count
	CgroupErr error    // why sockets of other control groups may be ours; see checkCgroup
	Held      Inodes   // see HeldSockets
	HeldErr   error

	// By Find.
	Open   []tcp.Socket // connections of the network namespace; matter if no TCP listener is found
	Unseen []string     // see Scope.Unseen
}

// Find gathers facts and decides. If no TCP listener was found, Find also looks for
// connections of a server that has closed its listeners, and, if no listener at all was
// found, for sockets that are in no table. The function connections lists the open connections of the network
// namespace.
func Find(f Facts, connections func() ([]tcp.Socket, error)) Scope {
	f.Gather()
	s := Decide(f)
	if f.Namespace {
		return s
	}
	if len(s.Ports) == 0 || len(s.Unserved) > 0 {
		open, err := connections()
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

// Gather collects facts.
func (f *Facts) Gather() {
	f.Ephemeral = proc.LocalPorts() // if unknown, every port counts as a server's
	if f.Namespace {
		return
	}
	f.CgroupErr = checkCgroup(proc, f.Cgroup)
	f.Held, f.HeldErr = HeldSockets(proc, f.WholePIDNamespace)
	f.Shim = Inodes{f.Listener: true}
	// The descriptors below 3 are shared with the command. On an error our own sockets count as
	// the command's: the hold may then be too long, but never too short.
	_, _ = proc.EachTarget(procfs.Self, func(fd int, target []byte) {
		if fd >= 3 {
			f.Shim[SocketInode(target)] = true
		}
	})
	var udp, unix error
	f.UDP, udp = proc.UDP()
	f.Unix, unix = proc.Unix()
	f.Err = cmp.Or(f.Err, udp, unix)
}

// proc is /proc of our own mount namespace.
const proc procfs.Root = ""
