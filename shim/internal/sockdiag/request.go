package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Query says which sockets to tell of.
type Query struct {
	States States
	Ports  []uint16 // local ones; empty: every port
	Info   bool     // with Socket.Info, which takes about a third longer
}

// States is a set of TCP states.
type States uint32

// AllStates has every state.
const AllStates States = 1<<(tcp.NewSynRecv+1) - 2

// In is the set of the given states.
func In(states ...tcp.State) (set States) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// The lengths of struct inet_diag_req_v2 and of struct inet_diag_bc_op.
const (
	requestLen = 56
	opLen      = 4
)

// From include/uapi/linux/inet_diag.h.
const (
	reqBytecode = 1 // INET_DIAG_REQ_BYTECODE
	opJump      = 1 // INET_DIAG_BC_JMP
	opFrom      = 2 // INET_DIAG_BC_S_GE: the local port is at least the next op's no
	opTo        = 3 // INET_DIAG_BC_S_LE: at most
)

// appendRequest appends to b the question for all sockets of a family that q
// and ports (those of q, as a set) describe.
func appendRequest(b []byte, seq uint32, family uint8, q Query, ports portSet) []byte {
	start := len(b)
	b = native.AppendUint32(b, 0) // the length, when it is known
	b = native.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = native.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0) // from: the kernel knows
	b = append(b, family, unix.IPPROTO_TCP, q.extensions(), 0)
	b = native.AppendUint32(b, uint32(q.States))
	b = append(b, make([]byte, socketIDLen)...) // no socket in particular
	if len(ports) > 0 {
		b = appendBytecode(b, ports)
	}
	native.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// extensions are the attributes that an answer has, a bit each.
func (q Query) extensions() uint8 {
	if q.Info {
		return 1 << (attrInfo - 1)
	}
	return 0
}

// A span's test in bytecode: two comparisons, each of an operation and its
// argument, and a jump to where the socket is accepted. The last span has no
// jump: there it falls through.
const (
	compareLen = 2 * opLen
	spanLen    = 2*compareLen + opLen
)

// appendBytecode appends the attribute that has the kernel keep the sockets
// whose local port is one of ports. A program accepts by ending exactly at its
// end, and refuses by jumping an operation further; the kernel checks that all
// "yes" lead through the program one by one. INET_DIAG_BC_S_EQ would be
// shorter, but is newer; these two are as old as inet_diag.
//
// See inet_diag_bc_audit and inet_diag_bc_run in net/ipv4/inet_diag.c.
func appendBytecode(b []byte, ports portSet) []byte {
	left := ports.spans()*spanLen - opLen
	b = native.AppendUint16(b, uint16(attrLen+left))
	b = native.AppendUint16(b, reqBytecode)
	for from, to := range ports.eachSpan {
		// Both refusals lead to the next span or, from the last, beyond the end.
		b = appendOp(b, opFrom, compareLen, spanLen)
		b = appendOp(b, 0, 0, from)
		b = appendOp(b, opTo, compareLen, spanLen-compareLen)
		b = appendOp(b, 0, 0, to)
		left -= 2 * compareLen
		if left > 0 {
			b = appendOp(b, opJump, opLen, uint16(left))
			left -= opLen
		}
	}
	return b
}

// appendOp appends a struct inet_diag_bc_op. The jumps yes and no are in bytes,
// from its start.
func appendOp(b []byte, code, yes uint8, no uint16) []byte {
	return native.AppendUint16(append(b, code, yes), no)
}
