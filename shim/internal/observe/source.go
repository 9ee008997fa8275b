package observe

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// dumper is a sockdiag.Conn. Tests have another.
type dumper interface {
	Dump(q sockdiag.Query, visit func(*tcp.Socket)) error
	Close() error
}

// maxFailures is how many dumps of sock_diag(7) may fail in a row before the source
// changes. A single failure (ENOBUFS, an interrupted dump) is temporary.
const maxFailures = 3

// source lists the TCP sockets of the network namespace: by sock_diag(7) or, after
// maxFailures, from the tables of /proc/net.
type source struct {
	conn       dumper // nil: /proc/net
	failures   int    // of conn, in a row
	root       procfs.Root
	name       string       // SockDiag, ProcNet or None; "": no port counts
	trouble    string       // why name is not SockDiag
	table      []tcp.Socket // the latest table of /proc/net
	tableFresh bool         // eachListener has not visited table
}

// open chooses the source and returns all listeners of the network namespace.
func (s *source) open() (list []tcp.Socket, err error) {
	conn, err := sockdiag.Open()
	if err == nil {
		s.conn = conn
	} else {
		s.fallBack(err)
	}
	return s.listeners()
}

// listeners lists all listeners of the network namespace.
func (s *source) listeners() ([]tcp.Socket, error) { return s.list(s.eachListener) }

// connections lists all open connections of the network namespace.
func (s *source) connections() ([]tcp.Socket, error) { return s.list(s.eachConnection) }

// list returns the sockets that each visits. A failed dump is repeated at once, until
// sock_diag is exhausted.
func (s *source) list(each func(visit func(*tcp.Socket)) error) (list []tcp.Socket, err error) {
	for {
		list = nil
		err = each(func(l *tcp.Socket) { list = append(list, *l) })
		if err == nil || s.conn == nil {
			return list, err
		}
		if s.exhausted(err) {
			s.fallBack(err)
		}
	}
}

// everyInode lists the sockets of TCP in the network namespace that a process has open.
func (s *source) everyInode() (inodes []uint32, err error) {
	add := func(found *tcp.Socket) { inodes = append(inodes, found.Inode) }
	err = s.eachListener(add)
	if err == nil {
		err = s.eachConnection(add)
	}
	return inodes, err
}

// eachListener visits the listeners of the network namespace. A table of /proc/net that
// dump has read is not read again.
func (s *source) eachListener(visit func(*tcp.Socket)) (err error) {
	if s.conn != nil {
		return s.query(sockdiag.Query{States: sockdiag.In(tcp.Listen)}, visit)
	}
	if !s.tableFresh {
		s.table, err = s.root.TCP(s.table[:0])
	}
	s.tableFresh = false
	for i := range s.table {
		if s.table[i].State == tcp.Listen {
			visit(&s.table[i])
		}
	}
	return err
}

// eachConnection visits the open connections of the network namespace.
func (s *source) eachConnection(visit func(*tcp.Socket)) error {
	states := sockdiag.In(tcp.Established, tcp.CloseWait)
	if s.conn != nil {
		return s.query(sockdiag.Query{States: states}, visit)
	}
	table, err := s.root.TCP(nil)
	for i := range table {
		if states&sockdiag.In(table[i].State) != 0 {
			visit(&table[i])
		}
	}
	return err
}

// query visits sockets by sock_diag, and counts failures in a row.
func (s *source) query(q sockdiag.Query, visit func(*tcp.Socket)) error {
	err := s.conn.Dump(q, visit)
	s.failures++
	if err == nil {
		s.failures = 0
	}
	return err
}

// exhausted reports whether, after an error, the source is to change.
func (s *source) exhausted(err error) bool {
	return s.conn != nil && (s.failures >= maxFailures || permanent(err))
}

// permanent reports whether another dump would fail too: sock_diag is missing or
// forbidden, or a dump blocks for so long that samples would be too rare.
func permanent(err error) bool {
	for _, errno := range []error{
		unix.EPERM, unix.EACCES, unix.ENOENT, unix.ENOSYS,
		unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ETIMEDOUT,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// dump visits the sockets with these local ports, by sock_diag without sockets in
// TIME_WAIT. A visited socket is valid until visit returns. After an error some sockets
// may have been visited.
func (s *source) dump(ports scope.Ports, visit func(*tcp.Socket)) (err error) {
	if s.conn != nil {
		states := sockdiag.AllStates &^ sockdiag.In(tcp.TimeWait)
		return s.query(sockdiag.Query{States: states, Ports: ports, Info: true}, visit)
	}
	s.table, err = s.root.TCP(s.table[:0])
	s.tableFresh = err == nil
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
func (s *source) otherEnds(conns []tcp.Socket) (found map[ends]tcp.Socket, err error) {
	found = map[ends]tcp.Socket{}
	add := func(other *tcp.Socket) { found[ends{other.Local, other.Remote}] = *other }
	if s.conn == nil {
		for i := range s.table {
			add(&s.table[i])
		}
		return found, nil
	}
	var ports []uint16
	for i := range conns {
		ports = append(ports, conns[i].Remote.Port())
	}
	err = s.query(sockdiag.Query{States: sockdiag.AllStates, Ports: ports}, add)
	return found, err
}

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
