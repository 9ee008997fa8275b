package sockdiag

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// reply parses the datagrams of a dump.
type reply struct {
	seq   uint32
	ports portSet
	sock  *tcp.Socket // reused for each visit
	visit func(*tcp.Socket)

	done        bool
	interrupted bool
}

// parse visits the sockets of one datagram. Messages with another sequence number are
// left of an earlier dump, and skipped.
func (r *reply) parse(b []byte) error {
	for len(b) > 0 && !r.done {
		m, rest, err := nextMessage(b)
		if err != nil {
			return err
		}
		if m.seq == r.seq {
			if err := r.parseMessage(m); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}

func (r *reply) parseMessage(m message) error {
	if m.flags&unix.NLM_F_DUMP_INTR != 0 {
		r.interrupted = true
	}
	switch m.kind {
	case unix.NLMSG_NOOP:
		return nil
	case unix.NLMSG_DONE, unix.NLMSG_ERROR:
		r.done = true
		return m.errno()
	case unix.SOCK_DIAG_BY_FAMILY:
		return visitSocket(m, r.ports, r.sock, r.visit)
	}
	return fmt.Errorf("%w: unknown type %d", ErrMalformed, m.kind)
}

// visitSocket visits the socket of a message, if its local port is in ports.
func visitSocket(m message, ports portSet, s *tcp.Socket, visit func(*tcp.Socket)) error {
	if err := decodeSocket(m.payload, s); err != nil {
		return err
	}
	if ports.contains(s.Local.Port()) {
		visit(s)
	}
	return nil
}
