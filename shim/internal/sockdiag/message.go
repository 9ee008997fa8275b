package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrMalformed means bytes that no kernel sends.
var ErrMalformed = errors.New("malformed netlink message")

// native is the byte order of netlink. Ports and addresses are in network byte order.
var native = binary.NativeEndian

// The lengths of struct nlmsghdr and struct nlattr.
const (
	headerLen = unix.NLMSG_HDRLEN
	attrLen   = unix.NLA_HDRLEN
)

// message is a netlink message; see netlink(7).
type message struct {
	kind    uint16
	flags   uint16
	seq     uint32
	payload []byte
}

// nextMessage splits b into its first message and the rest. Messages are aligned to four
// bytes.
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) < headerLen {
		return m, nil, fmt.Errorf("%w: a header of %d bytes", ErrMalformed, len(b))
	}
	n := uint64(native.Uint32(b))
	if n < headerLen || n > uint64(len(b)) {
		return m, nil, fmt.Errorf("%w: length %d in a datagram with %d bytes left", ErrMalformed, n, len(b))
	}
	m = message{
		kind:    native.Uint16(b[4:]),
		flags:   native.Uint16(b[6:]),
		seq:     native.Uint32(b[8:]),
		payload: b[headerLen:n],
	}
	return m, b[min(align(int(n)), len(b)):], nil
}

// errno returns the error of NLMSG_ERROR or NLMSG_DONE. Both begin with a negative error
// number, or 0; NLMSG_DONE may be empty.
func (m message) errno() error {
	if len(m.payload) < 4 {
		if m.kind == unix.NLMSG_DONE {
			return nil
		}
		return fmt.Errorf("%w: an error number of %d bytes", ErrMalformed, len(m.payload))
	}
	switch n := int32(native.Uint32(m.payload)); {
	case n == 0:
		return nil
	case n > 0 || n < -4095: // MAX_ERRNO
		return fmt.Errorf("%w: error number %d", ErrMalformed, n)
	default:
		return unix.Errno(-n)
	}
}

// nextAttribute splits b into its first attribute (length, type and value) and the rest.
func nextAttribute(b []byte) (kind uint16, value, rest []byte, err error) {
	if len(b) < attrLen {
		return 0, nil, nil, fmt.Errorf("%w: an attribute header of %d bytes", ErrMalformed, len(b))
	}
	n := int(native.Uint16(b))
	if n < attrLen || n > len(b) {
		return 0, nil, nil, fmt.Errorf("%w: attribute length %d in a message with %d bytes left",
			ErrMalformed, n, len(b))
	}
	return native.Uint16(b[2:]), b[attrLen:n], b[min(align(n), len(b)):], nil
}

// align rounds n up to a multiple of four: NLMSG_ALIGN and NLA_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }
