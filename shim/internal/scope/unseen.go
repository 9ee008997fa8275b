package scope

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// findUnseen returns what our processes have in use and no table shows. Processes with
// unreadable descriptors are skipped: all tables of the namespace are empty then, the
// neighbors' sockets included.
func findUnseen(f *Facts) (found []string) {
	note := func(kind string) {
		if kind != "" && !slices.Contains(found, kind) {
			found = append(found, kind)
		}
	}
	// Sockets passed by socket activation may be of another network namespace, as with podman run
	// --network=none. They look like sockets that are not bound. See sd_listen_fds(3).
	if os.Getenv("LISTEN_FDS") != "" {
		note("inherited sockets")
	}
	own, err := proc.NetNamespace(procfs.Self)
	pids, _ := Processes(proc, f.WholePIDNamespace)
	for _, pid := range pids {
		namespace, failed := proc.NetNamespace(pid)
		if err == nil && failed == nil && namespace != own {
			note("another network namespace") // whose sockets are in other tables
		}
		_, _ = proc.EachTarget(pid, func(fd int, target []byte) {
			inode := SocketInode(target)
			if inode != 0 && !f.Shim.Has(inode) {
				note(socketKind(proc.SocketProtocol(pid, fd)))
			}
		})
	}
	return found
}

// socketKind returns the word of Scope.Unseen for a socket of a protocol, "" for the protocols of sockets
// that a table shows as soon as a socket serves clients, and of sockets that serve none:
// AF_PACKET captures, AF_ALG and AF_KEY talk to the kernel, ICMP sockets (PING) receive
// replies. A socket that is neither bound nor connected is in no table. A system
// without names of protocols (gVisor) has no vsock and no SCTP sockets.
func socketKind(protocol string, err error) string {
	switch err {
	case nil:
	case unix.ENOENT, unix.ESRCH, unix.EOPNOTSUPP, unix.ENODATA, unix.ENOSYS:
		return ""
	default:
		return "sockets of an unknown protocol"
	}
	switch strings.TrimSuffix(protocol, "v6") {
	case "AF_VSOCK":
		return "vsock sockets"
	case "RAW":
		return "raw sockets"
	case "SCTP":
		return "SCTP sockets"
	case "TCP", "MPTCP", "UDP", "UNIX", "UNIX-STREAM", "NETLINK", "PACKET", "ALG", "KEY", "PING":
		return ""
	}
	return fmt.Sprintf("sockets of the protocol %q", protocol)
}
