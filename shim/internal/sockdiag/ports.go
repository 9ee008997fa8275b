package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// maxSpans is how many ports a filter tells apart. With more ports the filter
// is a single span from the first port to the last, and other ports are left out after
// decoding.
//
// The limit comes from socket filters: net.core.optmem_max was 20 KiB for many years, and
// the three instructions of a span take 24 bytes or more.
const maxSpans = 256

// span is a run of ports, both ends included.
type span struct{ from, to uint16 }

// spans returns the spans of a filter.
func spans(p tcp.Ports) (list []span) {
	if len(p) > maxSpans {
		return []span{{p[0], p[len(p)-1]}}
	}
	for _, port := range p {
		list = append(list, span{port, port})
	}
	return list
}

// localPortOffset is the offset of the local port in the message of a socket: behind
// struct nlmsghdr, and four bytes of struct inet_diag_msg.
const localPortOffset = headerLen + 4

// socketFilter returns the classic BPF program that accepts messages of sockets with a
// local port in p; nil accepts all. See socket(7) and
// Documentation/networking/filter.rst: BPF_ABS loads in network byte order.
func socketFilter(p tcp.Ports) (program []unix.SockFilter) {
	if len(p) == 0 {
		return nil
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: localPortOffset})
	for _, span := range spans(p) {
		program = append(program, []unix.SockFilter{
			{Code: unix.BPF_JMP | unix.BPF_JGE, Jf: 2, K: uint32(span.from)},
			{Code: unix.BPF_JMP | unix.BPF_JGT, Jt: 1, K: uint32(span.to)},
			{Code: unix.BPF_RET, K: ^uint32(0)},
		}...)
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET})
}
