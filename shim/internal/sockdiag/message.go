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

// eachMessage calls handle with the messages of a datagram, until an error. Messages are aligned to four
// bytes.
func eachMessage(b []byte, handle func(message) error) error {
	for len(b) > 0 {
		if len(b) < headerLen {
			return ErrMalformed
		}
		n := uint64(native.Uint32(b))
		if n < headerLen || n > uint64(len(b)) {
			return ErrMalformed
		}
		m := message{kind: native.Uint16(b[4:]), flags: native.Uint16(b[6:]), payload: b[headerLen:n]}
		if err := handle(m); err != nil {
			return err
		}
		b = b[min(align(int(n)), len(b)):]
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

// align rounds n up to a multiple of four: NLMSG_ALIGN and NLA_ALIGN.
func align(n int) int { return (n + 3) &^ 3 }
