package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// maxPorts is how many ports the kernel tells apart. With more, sockets of other ports are left out after
// decoding.
//
// The limit comes from socket filters: net.core.optmem_max was 20 KiB for many years, and
// the two instructions of a port take 16 bytes or more.
const maxPorts = 256

// areFiltered reports whether the kernel leaves the sockets of other ports out.
func areFiltered(p tcp.Ports) bool { return len(p) > 0 && len(p) <= maxPorts }

// localPortOffset is the offset of the local port in the message of a socket: behind
// struct nlmsghdr, and four bytes of struct inet_diag_msg.
const localPortOffset = headerLen + 4

// socketFilter returns the classic BPF program that accepts messages of sockets with a
// local port in p. See socket(7) and
// Documentation/networking/filter.rst: BPF_ABS loads in network byte order.
func socketFilter(p tcp.Ports) (program []unix.SockFilter) {
	accept := unix.SockFilter{Code: unix.BPF_RET, K: ^uint32(0)}
	if !areFiltered(p) {
		return []unix.SockFilter{accept}
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: localPortOffset})
	for _, port := range p {
		isPort := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ, Jf: 1, K: uint32(port)}
		program = append(program, isPort, accept)
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET})
}
