package sockdiag

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

var (
	errMalformed   = errors.New("malformed netlink message") // bytes that no kernel sends
	errInterrupted = errors.New("the sockets changed while they were listed")
)

// native is the byte order of netlink. Ports and addresses are in network byte order.
var native = binary.NativeEndian

// The lengths of struct nlmsghdr and struct nlattr.
const (
	headerLen = unix.NLMSG_HDRLEN
	attrLen   = unix.NLA_HDRLEN
)

// reply parses datagrams: those of a dump, or of events.
type reply struct {
	ports tcp.Ports
	sock  *tcp.Socket // reused for each visit
	visit func(*tcp.Socket)
	done  bool
}

// parse visits the sockets of one datagram, of netlink messages; see netlink(7).
func (r *reply) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < headerLen {
			return errMalformed
		}
		kind, flags := native.Uint16(b[4:]), native.Uint16(b[6:])
		payload, rest, err := cut(b, headerLen, int(native.Uint32(b)))
		switch {
		case err != nil:
			return err
		case flags&unix.NLM_F_DUMP_INTR != 0: // some may be missing
			return errInterrupted
		case kind == unix.NLMSG_NOOP:
		case kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR:
			r.done = true
			return errno(payload)
		case kind != unix.SOCK_DIAG_BY_FAMILY:
			return errMalformed
		default:
			if err := decodeSocket(payload, r.sock); err != nil {
				return err
			}
			if len(r.ports) == 0 || r.ports.Has(r.sock.Local.Port()) {
				r.visit(r.sock)
			}
		}
		b = rest
	}
	return nil
}

// cut cuts the first length bytes off b, a message or an attribute, whose header is left out. Both are
// aligned to four bytes.
func cut(b []byte, header, length int) (payload, rest []byte, err error) {
	if length < header || length > len(b) {
		return nil, nil, errMalformed
	}
	return b[header:length], b[min((length+3)&^3, len(b)):], nil
}

// errno returns the error of NLMSG_ERROR or NLMSG_DONE. Both begin with a negative error
// number, or 0.
func errno(payload []byte) error {
	if len(payload) < 4 {
		return errMalformed
	}
	if n := int32(native.Uint32(payload)); n != 0 {
		return unix.Errno(-n)
	}
	return nil
}
