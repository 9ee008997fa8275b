package sockdiag

import (
	"slices"

	"golang.org/x/sys/unix"
)

// mostSpans is how many runs of consecutive ports a filter tells apart. With
// more, it is one run from the first port to the last, and what the kernel lets
// through is sorted out here.
//
// The limit is that of socket filters: net.core.optmem_max was 20 KiB for long,
// and the three instructions of a run take 24 bytes or more.
const mostSpans = 256

// portSet is a set of ports, in order. The empty one stands for every port.
type portSet []uint16

// newPortSet is the set of ports, in the memory of into.
func newPortSet(into portSet, ports []uint16) portSet {
	into = append(into[:0], ports...)
	slices.Sort(into)
	return slices.Compact(into)
}

// has reports whether port is one of p.
func (p portSet) has(port uint16) bool {
	if len(p) == 0 {
		return true
	}
	_, found := slices.BinarySearch(p, port)
	return found
}

// spans is the number of spans that eachSpan has.
func (p portSet) spans() (n int) {
	for range p.eachSpan {
		n++
	}
	return n
}

// eachSpan yields the first and the last port of each run of consecutive ones.
func (p portSet) eachSpan(yield func(from, to uint16) bool) {
	if p.runs() > mostSpans {
		yield(p[0], p[len(p)-1])
		return
	}
	for from := 0; from < len(p); {
		to := from
		for to+1 < len(p) && p[to+1] == p[to]+1 {
			to++
		}
		if !yield(p[from], p[to]) {
			return
		}
		from = to + 1
	}
}

// runs is how many runs of consecutive ports there are.
func (p portSet) runs() (n int) {
	for i := range p {
		if i == 0 || p[i] != p[i-1]+1 {
			n++
		}
	}
	return n
}

// localPort is where the local port is in a message about a socket, behind
// struct nlmsghdr.
const localPort = headerLen + 4

// filter is the classic BPF program that keeps the messages about sockets whose
// local port is one of p; nil: all. See socket(7) and
// Documentation/networking/filter.rst: BPF_ABS loads in network order.
func (p portSet) filter() (program []unix.SockFilter) {
	if len(p) == 0 {
		return nil
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: localPort})
	for from, to := range p.eachSpan {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 2, K: uint32(from)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, Jt: 1, K: uint32(to)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: ^uint32(0)})
	}
	return append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: 0})
}
