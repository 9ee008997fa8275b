package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// reply parses the datagrams of a dump.
type reply struct {
	ports tcp.Ports
	sock  *tcp.Socket // reused for each visit
	visit func(*tcp.Socket)

	done        bool
	interrupted bool
}

// parse visits the sockets of one datagram.
func (r *reply) parse(b []byte) error { return eachMessage(b, r.parseMessage) }

func (r *reply) parseMessage(m message) error {
	if r.done {
		return nil
	}
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
	return ErrMalformed
}

// visitSocket visits the socket of a message, if its local port is in ports.
func visitSocket(m message, ports tcp.Ports, s *tcp.Socket, visit func(*tcp.Socket)) error {
	if err := decodeSocket(m.payload, s); err != nil {
		return err
	}
	if len(ports) == 0 || ports.Has(s.Local.Port()) {
		visit(s)
	}
	return nil
}
