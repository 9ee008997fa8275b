package procfs

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// NetNamespace returns the network namespace of a process, as "net:[INODE]"; see
// namespaces(7).
func (r Root) NetNamespace(pid int) (string, error) { return os.Readlink(r.path(pid, "ns/net")) }

// SocketProtocol returns the kernel's name of the protocol of a process's socket, as in
// /proc/net/protocols: "TCP", "UNIX-STREAM", "AF_VSOCK". The error is EOPNOTSUPP if the
// kernel names no protocols. See sockfs_xattr_get in net/socket.c.
func (r Root) SocketProtocol(pid, fd int) (string, error) {
	var name [64]byte
	n, err := unix.Getxattr(r.path(pid, "fd/"+strconv.Itoa(fd)), "system.sockprotoname", name[:])
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(name[:n]), "\x00"), nil
}
