package observe

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// ownCgroup returns the id of our control group as sock_diag shows the id: for a socket
// of ours, listening on loopback for a moment; 0 if unknown.
func ownCgroup(conn dumper) (id uint64) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if conn == nil || unix.Bind(fd, local) != nil || unix.Listen(fd, 0) != nil {
		return 0
	}
	var stat syscall.Stat_t
	name, err := unix.Getsockname(fd)
	if err != nil || syscall.Fstat(fd, &stat) != nil {
		return 0
	}
	q := sockdiag.Query{States: sockdiag.In(tcp.Listen), Ports: []uint16{uint16(name.(*unix.SockaddrInet4).Port)}}
	for range maxFailures {
		err := conn.Dump(q, func(s *tcp.Socket) {
			if uint64(s.Inode) == stat.Ino {
				id = s.Cgroup
			}
		})
		if err == nil {
			break
		}
	}
	return id
}
