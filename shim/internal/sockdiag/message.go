package sockdiag

import (
	"encoding/binary"
	"errors"

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
	payload []byte
}

// nextMessage splits b into its first message and the rest. Messages are aligned to four
// bytes.
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) < headerLen {
		return m, nil, ErrMalformed
	}
	n := uint64(native.Uint32(b))
	if n < headerLen || n > uint64(len(b)) {
		return m, nil, ErrMalformed
	}
	m = message{
		kind:    native.Uint16(b[4:]),
		flags:   native.Uint16(b[6:]),
		payload: b[headerLen:n],
	}
	return m, b[min(align(int(n)), len(b)):], nil
}

// eachMessage calls handle with the messages of a datagram, until an error.
func eachMessage(b []byte, handle func(message) error) error {
	for len(b) > 0 {
		m, rest, err := nextMessage(b)
		if err == nil {
			err = handle(m)
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// errno returns the error of NLMSG_ERROR or NLMSG_DONE. Both begin with a negative error
// number, or 0; NLMSG_DONE may be empty.
func (m message) errno() error {
	if len(m.payload) < 4 {
		if m.kind == unix.NLMSG_DONE {
			return nil
		}
		return ErrMalformed
	}
	switch n := int32(native.Uint32(m.payload)); {
	case n == 0:
		return nil
	case n > 0 || n < -4095: // MAX_ERRNO
		return ErrMalformed
	default:
		return unix.Errno(-n)
	}
}

// nextAttribute splits b into its first attribute (length, type and value) and the rest.
func nextAttribute(b []byte) (kind uint16, value, rest []byte, err error) {
	if len(b) < attrLen {
		return 0, nil, nil, ErrMalformed
	}
	n := int(native.Uint16(b))
	if n < attrLen || n > len(b) {
		return 0, nil, nil, ErrMalformed
	}
	return native.Uint16(b[2:]), b[attrLen:n], b[min(align(n), len(b)):], nil
}

// align rounds n up to a multiple of four: NLMSG_ALIGN and NLA_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }
