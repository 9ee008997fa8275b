package procfs

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// EachTarget calls visit with every open descriptor of a process and the file behind it,
// as in proc_pid_fd(5): "socket:[INODE]", "pipe:[INODE]", or a path, cut to 64 bytes. The
// target is valid during the call. EachTarget returns how many descriptors were visited.
func (r Root) EachTarget(pid int, visit func(fd int, target []byte)) (n int, err error) {
	return r.eachTarget(pid, math.MaxInt, visit)
}

// eachTarget is EachTarget for the descriptors below a limit.
func (r Root) eachTarget(pid, limit int, visit func(fd int, target []byte)) (n int, err error) {
	var buf [64]byte
	err = numbers(r.path(pid, "fd"), func(dir, fd int) error {
		if fd >= limit {
			return errEnough
		}
		length, err := unix.Readlinkat(dir, strconv.Itoa(fd), buf[:])
		if err == unix.ENOENT {
			return nil // closed meanwhile
		}
		if err != nil {
			return err
		}
		n++
		visit(fd, buf[:length])
		return nil
	})
	return n, err
}

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

// NetNamespace returns the network namespace of a process, as "net:[INODE]"; see
// namespaces(7).
func (r Root) NetNamespace(pid int) (string, error) { return os.Readlink(r.path(pid, "ns/net")) }
