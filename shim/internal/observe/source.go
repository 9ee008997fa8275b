package observe

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/lameduck-init/lameduck/shim/internal/procnet"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// dumper is a sockdiag.Conn. Tests have another.
type dumper interface {
	Dump(q sockdiag.Query, visit func(*tcp.Socket)) error
	Close() error
}

// source lists the TCP sockets of the network namespace: by sock_diag(7) or, after a
// failure, from the tables of /proc/net.
type source struct {
	conn    dumper // nil: /proc/net
	root    procnet.Root
	name    string       // SockDiag, ProcNet or None; "": no port counts
	trouble string       // why name is not SockDiag
	table   []tcp.Socket // the latest table of /proc/net
}

// open chooses the source and returns all listeners of the network namespace.
func (s *source) open() ([]tcp.Socket, error) {
	conn, err := sockdiag.Open()
	if err == nil {
		s.conn = conn
	}
	return s.listeners(err)
}

// listeners lists the listeners by sock_diag, or from /proc/net after an error.
func (s *source) listeners(err error) (list []tcp.Socket, _ error) {
	if err == nil {
		q := sockdiag.Query{States: sockdiag.In(tcp.Listen)}
		err = uninterrupted(s.conn.Dump(q, func(l *tcp.Socket) { list = append(list, *l) }))
	}
	if err == nil {
		return list, nil
	}
	s.fallBack(err)
	return s.root.TCP(nil)
}

// uninterrupted ignores a change of sockets during a dump: a socket missed is in the next
// dump, as a new socket.
func uninterrupted(err error) error {
	if errors.Is(err, sockdiag.ErrInterrupted) {
		return nil
	}
	return err
}

// dump visits the sockets with these local ports, by sock_diag without sockets in
// TIME_WAIT. A visited socket is valid until visit returns.
func (s *source) dump(ports scope.Ports, visit func(*tcp.Socket)) (err error) {
	if s.conn != nil {
		q := sockdiag.Query{States: sockdiag.AllStates &^ sockdiag.In(tcp.TimeWait), Ports: ports, Info: true}
		return uninterrupted(s.conn.Dump(q, visit))
	}
	s.table, err = s.root.TCP(s.table[:0])
	for i := range s.table {
		if ports.Has(s.table[i].Local.Port()) {
			visit(&s.table[i])
		}
	}
	return err
}

// ends are both ends of a connection, as seen from one end.
type ends struct{ local, remote netip.AddrPort }

// otherEnds returns the sockets at the other ends of connections, as far as in the same
// network namespace. The source is the same as of the latest dump.
func (s *source) otherEnds(conns []tcp.Socket) map[ends]tcp.Socket {
	found := map[ends]tcp.Socket{}
	add := func(other *tcp.Socket) { found[ends{other.Local, other.Remote}] = *other }
	if s.conn == nil {
		for i := range s.table {
			add(&s.table[i])
		}
		return found
	}
	var ports []uint16
	for i := range conns {
		ports = append(ports, conns[i].Remote.Port())
	}
	s.conn.Dump(sockdiag.Query{States: sockdiag.AllStates, Ports: ports}, add) // a socket that is not found counts as foreign
	return found
}

// canFallBack reports whether another source is left.
func (s *source) canFallBack() bool { return s.conn != nil }

// fallBack changes the source to /proc/net, for good.
func (s *source) fallBack(err error) {
	s.close()
	s.name = ProcNet
	s.trouble = "sock_diag: " + err.Error()
}

// setUnobservable records that no source is left, and why.
func (s *source) setUnobservable(err error) {
	if s.name != None && s.trouble != "" {
		err = fmt.Errorf("%s; %w", s.trouble, err)
	}
	s.name = None
	s.trouble = err.Error()
}

// setObservable records that the source, after having failed, works again.
func (s *source) setObservable() {
	if s.name != None {
		return
	}
	s.trouble = ""
	s.name = ProcNet
	if s.conn != nil {
		s.name = SockDiag
	}
}

func (s *source) close() {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}
