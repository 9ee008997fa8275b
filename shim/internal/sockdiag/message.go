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

// eachMessage calls handle with the messages of a datagram, until an error.
func eachMessage(b []byte, handle func(message) error) error {
	for len(b) > 0 {
		if len(b) < headerLen {
			return ErrMalformed
		}
		payload, rest, err := cut(b, headerLen, int(native.Uint32(b)))
		if err == nil {
			err = handle(message{native.Uint16(b[4:]), native.Uint16(b[6:]), payload})
		}
		if err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// cut cuts the first length bytes off b, a message or an attribute, whose header is left out. Both are
// aligned to four bytes.
func cut(b []byte, header, length int) (payload, rest []byte, err error) {
	if length < header || length > len(b) {
		return nil, nil, ErrMalformed
	}
	return b[header:length], b[min((length+3)&^3, len(b)):], nil
}

// errno returns the error of NLMSG_ERROR or NLMSG_DONE. Both begin with a negative error
// number, or 0.
func (m message) errno() error {
	if len(m.payload) < 4 {
		return ErrMalformed
	}
	if n := int32(native.Uint32(m.payload)); n != 0 {
		return unix.Errno(-n)
	}
	return nil
}
