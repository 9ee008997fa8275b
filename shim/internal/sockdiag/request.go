package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// States is a set of TCP states.
type States uint32

// AllStates is the set of all states.
const AllStates States = 1<<(tcp.NewSynRecv+1) - 2

// In returns the set of the given states.
func In(states ...tcp.State) (set States) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// inetDiagReq is a message with struct inet_diag_req_v2. No id asks for all sockets.
type inetDiagReq struct {
	header                          unix.NlMsghdr
	family, protocol, attributes, _ uint8
	states                          States
	_                               [48]byte // id
}

// bcOpLen is the length of struct inet_diag_bc_op.
const bcOpLen = 4

// INET_DIAG_REQ_BYTECODE and the operations of include/uapi/linux/inet_diag.h.
const (
	attrBytecode = 1 // INET_DIAG_REQ_BYTECODE
	bcJump       = 1 // INET_DIAG_BC_JMP
	bcSrcGE      = 2 // INET_DIAG_BC_S_GE: local port >= the field no of the next operation
	bcSrcLE      = 3 // INET_DIAG_BC_S_LE: local port <= the field no of the next operation
)

// newRequest returns, in the memory of b, a request for sockets of a family.
func newRequest(b []byte, family uint8, states States, ports tcp.Ports) []byte {
	request := inetDiagReq{
		header: unix.NlMsghdr{Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP},
		family: family, protocol: unix.IPPROTO_TCP, states: states,
		attributes: 1 << (attrInfo - 1), // a bit for each to send with each socket
	}
	b = append(b[:0], bytesOf(&request)...)
	if areFiltered(ports) {
		b = appendBytecode(b, ports)
	}
	native.PutUint32(b, uint32(len(b)))
	return b
}

// The bytecode of a port has two comparisons, each with an operation for its argument,
// and a jump to the end of the program. The last port needs no jump.
const (
	compareLen = 2 * bcOpLen
	portLen    = 2*compareLen + bcOpLen
)

// appendBytecode appends the attribute INET_DIAG_REQ_BYTECODE, a program that accepts
// sockets with a local port in ports. A program accepts by reaching its exact end, and
// rejects by jumping one operation further. The kernel checks that the fields yes lead
// through the program operation by operation. INET_DIAG_BC_S_EQ would be shorter, but is
// newer; S_GE and S_LE are as old as inet_diag.
//
// See inet_diag_bc_audit and inet_diag_bc_run in net/ipv4/inet_diag.c.
func appendBytecode(b []byte, ports tcp.Ports) []byte {
	left := len(ports)*portLen - bcOpLen
	b = native.AppendUint16(b, uint16(attrLen+left))
	b = native.AppendUint16(b, attrBytecode)
	for _, port := range ports {
		// A failed comparison leads to the next port or, of the last port, beyond the end.
		b = appendBytecodeOp(b, bcSrcGE, compareLen, portLen)
		b = appendBytecodeOp(b, 0, 0, port)
		b = appendBytecodeOp(b, bcSrcLE, compareLen, portLen-compareLen)
		b = appendBytecodeOp(b, 0, 0, port)
		left -= 2 * compareLen
		if left > 0 {
			b = appendBytecodeOp(b, bcJump, bcOpLen, uint16(left))
			left -= bcOpLen
		}
	}
	return b
}

// appendBytecodeOp appends a struct inet_diag_bc_op. The offsets yes and no count bytes
// from the start of the operation.
func appendBytecodeOp(b []byte, code, yes uint8, no uint16) []byte {
	return native.AppendUint16(append(b, code, yes), no)
}
