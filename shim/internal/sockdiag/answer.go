package sockdiag

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// answer is what the kernel says to one question, datagram by datagram.
type answer struct {
	seq   uint32
	ports portSet
	sock  *tcp.Socket // the one that is visited, again and again
	visit func(*tcp.Socket)

	done        bool
	interrupted bool
}

// take visits the sockets that one datagram tells of. What has another number
// is the rest of an earlier answer, and is skipped.
func (a *answer) take(b []byte) error {
	for len(b) > 0 && !a.done {
		m, rest, err := next(b)
		if err != nil {
			return err
		}
		if m.seq == a.seq {
			if err := a.one(m); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}

// one takes one message.
func (a *answer) one(m message) error {
	if m.flags&unix.NLM_F_DUMP_INTR != 0 {
		a.interrupted = true
	}
	switch m.kind {
	case unix.NLMSG_NOOP:
		return nil
	case unix.NLMSG_DONE, unix.NLMSG_ERROR:
		a.done = true
		return m.errno()
	case unix.SOCK_DIAG_BY_FAMILY:
		return visitOne(m, a.ports, a.sock, a.visit)
	}
	return fmt.Errorf("%w: of kind %d", ErrMalformed, m.kind)
}

// err is what is to be said when the answer is complete.
func (a *answer) err() error {
	if a.interrupted {
		return ErrInterrupted
	}
	return nil
}

// visitOne visits the socket that m tells of, where its port is one of ports.
func visitOne(m message, ports portSet, s *tcp.Socket, visit func(*tcp.Socket)) error {
	if err := decode(m.payload, s); err != nil {
		return err
	}
	if ports.has(s.Local.Port()) {
		visit(s)
	}
	return nil
}
