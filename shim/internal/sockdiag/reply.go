package sockdiag

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// reply parses datagrams: those of a dump, or of events.
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
	r.interrupted = r.interrupted || m.flags&unix.NLM_F_DUMP_INTR != 0
	switch m.kind {
	case unix.NLMSG_NOOP:
		return nil
	case unix.NLMSG_DONE, unix.NLMSG_ERROR:
		r.done = true
		return m.errno()
	case unix.SOCK_DIAG_BY_FAMILY:
		err := decodeSocket(m.payload, r.sock)
		if err == nil && (len(r.ports) == 0 || r.ports.Has(r.sock.Local.Port())) {
			r.visit(r.sock)
		}
		return err
	}
	return ErrMalformed
}
