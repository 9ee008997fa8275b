package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrMalformed is what bytes make that cannot have come from a kernel.
var ErrMalformed = errors.New("malformed netlink message")

// native is the byte order of netlink's own numbers. Ports and addresses are in
// the network's.
var native = binary.NativeEndian

// Netlink's headers, in bytes: struct nlmsghdr, struct nlattr.
const (
	headerLen = unix.NLMSG_HDRLEN
	attrLen   = unix.NLA_HDRLEN
)

// message is one netlink message; see netlink(7).
type message struct {
	kind    uint16
	flags   uint16
	seq     uint32
	payload []byte
}

// next takes one message off b. What follows it is aligned to four bytes.
func next(b []byte) (m message, rest []byte, err error) {
	if len(b) < headerLen {
		return m, nil, fmt.Errorf("%w: %d bytes of a header", ErrMalformed, len(b))
	}
	n := uint64(native.Uint32(b))
	if n < headerLen || n > uint64(len(b)) {
		return m, nil, fmt.Errorf("%w: a length of %d, with %d bytes there", ErrMalformed, n, len(b))
	}
	m = message{
		kind:    native.Uint16(b[4:]),
		flags:   native.Uint16(b[6:]),
		seq:     native.Uint32(b[8:]),
		payload: b[headerLen:n],
	}
	return m, b[min(align(int(n)), len(b)):], nil
}

// errno is what NLMSG_ERROR and NLMSG_DONE say: a negative error number first,
// or 0. DONE may say nothing at all.
func (m message) errno() error {
	if len(m.payload) < 4 {
		if m.kind == unix.NLMSG_DONE {
			return nil
		}
		return fmt.Errorf("%w: an error of %d bytes", ErrMalformed, len(m.payload))
	}
	switch n := int32(native.Uint32(m.payload)); {
	case n == 0:
		return nil
	case n > 0 || n < -4095: // MAX_ERRNO
		return fmt.Errorf("%w: error %d", ErrMalformed, n)
	default:
		return unix.Errno(-n)
	}
}

// attribute takes one attribute off b: a length, a kind and a value.
func attribute(b []byte) (kind uint16, value, rest []byte, err error) {
	if len(b) < attrLen {
		return 0, nil, nil, fmt.Errorf("%w: %d bytes of an attribute", ErrMalformed, len(b))
	}
	n := int(native.Uint16(b))
	if n < attrLen || n > len(b) {
		return 0, nil, nil, fmt.Errorf("%w: an attribute of %d bytes, with %d there", ErrMalformed, n, len(b))
	}
	return native.Uint16(b[2:]), b[attrLen:n], b[min(align(n), len(b)):], nil
}

// align rounds n up to a multiple of four: NLMSG_ALIGN and NLA_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }
