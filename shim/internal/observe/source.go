package observe

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
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

// retryInterval is the time from the first try of sock_diag(7) after a change to /proc/net to the second. It
// doubles with each try.
const retryInterval = time.Second

// source lists the TCP sockets of the network namespace: by sock_diag(7) or, after
// maxFailures, from the tables of /proc/net.
type source struct {
	connect  func() (dumper, error)
	conn     dumper // nil: /proc/net
	failures int    // of conn, in a row
	worked   bool   // conn has
	root     procfs.Root
	table    []tcp.Socket // the memory of a table of /proc/net
	limits   string       // what is not shown, or why conn is nil
	failed   error        // why no source could be read last; nil: one could

	retries bool          // sock_diag(7) is tried again
	retryAt time.Time     // zero: at the next sample
	retryIn time.Duration // the latest interval
}

func (s *source) open() {
	conn, err := s.connect()
	if err != nil {
		s.fallBack(err)
		return
	}
	s.conn = conn
}

// fallBack changes the source to /proc/net. If sock_diag(7) has worked, and has not blocked, it will be
// tried again.
func (s *source) fallBack(err error) {
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
	s.limits = "sock_diag: " + err.Error()
	s.retries = s.worked && !errors.Is(err, unix.ETIMEDOUT)
}

// retry changes the source to sock_diag(7) if a try is due, and reports whether that works.
func (s *source) retry(now time.Time) bool {
	if s.conn != nil || !s.retries || now.Before(s.retryAt) {
		return false
	}
	s.retryIn = max(retryInterval, 2*s.retryIn)
	s.retryAt = now.Add(s.retryIn)
	conn, err := s.connect()
	if err != nil {
		return false
	}
	if conn.Dump(sockdiag.Query{States: listenStates}, func(*tcp.Socket) {}) != nil {
		conn.Close()
		return false
	}
	s.conn, s.failures, s.limits = conn, 0, ""
	return true
}

// each visits the sockets that match q, whose ports are in ascending order. A socket is
// valid until visit returns. After an error some sockets may have been visited.
func (s *source) each(q sockdiag.Query, visit func(*tcp.Socket)) (err error) {
	if s.conn != nil {
		err = s.conn.Dump(q, visit)
		s.failures++
		if err == nil {
			s.failures = 0
			s.worked = true
		}
		return err
	}
	s.table, err = s.root.TCP(s.table[:0])
	for i := range s.table {
		found := &s.table[i]
		isWanted := len(q.Ports) == 0 || q.Ports.Has(found.Local.Port())
		if isWanted && q.States&sockdiag.In(found.State) != 0 {
			visit(found)
		}
	}
	return err
}

// list returns the sockets in these states. A failed dump is repeated at once, until
// sock_diag is exhausted.
func (s *source) list(states sockdiag.States) (list []tcp.Socket, err error) {
	for {
		list = nil
		err = s.each(sockdiag.Query{States: states}, func(found *tcp.Socket) { list = append(list, *found) })
		if err == nil || s.conn == nil {
			return list, err
		}
		if s.exhausted(err) {
			s.fallBack(err)
		}
	}
}

// exhausted reports whether, after an error, the source is to change: sock_diag has failed
// too often, is missing or forbidden, or blocks for so long that samples would be too rare.
func (s *source) exhausted(err error) bool {
	var errno unix.Errno
	errors.As(err, &errno)
	switch errno {
	case unix.EPERM, unix.EACCES, unix.ENOENT, unix.ENOSYS,
		unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ETIMEDOUT:
		return s.conn != nil
	}
	return s.conn != nil && s.failures >= maxFailures
}

// trouble returns why the source is not the best, "" if it is.
func (s *source) trouble() string {
	switch {
	case s.failed == nil:
		return s.limits
	case s.limits == "":
		return s.failed.Error()
	}
	return s.limits + "; " + s.failed.Error()
}

// ownCgroup returns the id of our control group as sock_diag shows the id: for a socket of
// ours, listening on loopback for a moment; 0 if unknown.
func (s *source) ownCgroup() uint64 {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if unix.Bind(fd, local) != nil || unix.Listen(fd, 0) != nil || unix.Fstat(fd, &stat) != nil {
		return 0
	}
	listeners, _ := s.list(listenStates)
	for i := range listeners {
		if uint64(listeners[i].Inode) == stat.Ino {
			return listeners[i].Cgroup
		}
	}
	return 0
}
