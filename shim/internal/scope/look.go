package scope

import (
	"cmp"
	"os"

	"github.com/lameduck-init/lameduck/shim/internal/procnet"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Query is what the caller of Look knows.
type Query struct {
	Proc string // where proc(5) is mounted; "" is /proc

	Given     []uint16     // ports that the user named
	Listeners []tcp.Socket // of the network namespace, as the observer sees them
	Err       error        // why it may not see all
	Cgroup    uint64       // what a socket of our own shows; 0 where that could not be asked
	Shim      []uint32     // inodes of sockets of lameduck's own; those from descriptor 3 up are found

	// Everyone takes all processes of our PID namespace for ours, and not only
	// our descendants. It is so without saying where we are PID 1; a hook that
	// runs beside the command must ask for it.
	Everyone bool
}

// Look finds what Decide needs to know.
func Look(q Query) Facts {
	q.Proc = cmp.Or(q.Proc, "/proc")
	net := procnet.Root(q.Proc)
	f := Facts{
		Given:     q.Given,
		Listeners: q.Listeners,
		Err:       q.Err,
		Cgroups:   readCgroups(q.Proc, q.Cgroup),
		Held:      Hold(q.Proc, q.Everyone || os.Getpid() == 1),
	}
	// Where this fails our own listener, if there is one, counts: we may wait for
	// it in vain, but never too briefly.
	f.Shim, _ = Own(q.Proc)
	for _, inode := range q.Shim {
		f.Shim[inode] = struct{}{}
	}
	var udp, unix error
	f.UDP, udp = net.UDP()
	f.Unix, unix = net.Unix()
	f.Err = cmp.Or(f.Err, udp, unix)
	f.Ephemeral, _ = net.LocalPorts() // not known, every port is a server's
	return f
}
