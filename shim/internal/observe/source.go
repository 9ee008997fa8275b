package observe

import (
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// proc is /proc of our own mount namespace.
const proc procfs.Root = ""

// maxFailures is how many dumps of sock_diag(7) may fail in a row before the source
// changes. A single failure (ENOBUFS, an interrupted dump) is temporary.
const maxFailures = 3

// retryInterval is the time from the first try of sock_diag(7) after a change to /proc/net to the second. It
// doubles with each try.
const retryInterval = time.Second

// source lists the TCP sockets of the network namespace: by sock_diag(7) or, after
// maxFailures, from the tables of /proc/net.
type source struct {
	dump     func(states sockdiag.States, ports tcp.Ports, visit func(*tcp.Socket)) error
	failures int // of dump, in a row; from maxFailures on dump is only tried
	retryAt  time.Time
	retryIn  time.Duration // the latest interval
	root     procfs.Root
	limits   string // what is not shown, or why the tables are read
	failed   error  // why no source could be read last; nil: one could
}

// isTable reports whether the tables of /proc/net are read.
func (s *source) isTable() bool { return s.failures >= maxFailures }

// retry tries sock_diag(7) again if that is due, and changes the source if it works.
func (s *source) retry(now time.Time) {
	if !s.isTable() || now.Before(s.retryAt) {
		return
	}
	s.retryIn = max(retryInterval, 2*s.retryIn)
	s.retryAt = now.Add(s.retryIn)
	if s.dump(listenStates, nil, func(*tcp.Socket) {}) == nil {
		s.failures, s.limits = 0, ""
	}
}

// each visits sockets, as sockdiag.Lister.Dump does. A socket is valid until visit returns. After an error some sockets
// may have been visited.
func (s *source) each(states sockdiag.States, ports tcp.Ports, visit func(*tcp.Socket)) error {
	if s.isTable() {
		return s.root.TCP(func(found *tcp.Socket) {
			isWanted := len(ports) == 0 || ports.Has(found.Local.Port())
			if isWanted && states&sockdiag.In(found.State) != 0 {
				visit(found)
			}
		})
	}
	err := s.dump(states, ports, visit)
	s.failures++
	if err == nil {
		s.failures = 0
	}
	if s.isTable() {
		s.limits = "sock_diag: " + err.Error()
	}
	return err
}

// list returns the sockets in these states. A failed dump is repeated at once, until
// the source changes.
func (s *source) list(states sockdiag.States) (list []tcp.Socket, err error) {
	for {
		list = nil
		isLast := s.isTable()
		err = s.each(states, nil, func(found *tcp.Socket) { list = append(list, *found) })
		if err == nil || isLast {
			return list, err
		}
	}
}

// trouble returns why the source is not the best, "" if it is.
func (s *source) trouble() string {
	if s.failed == nil {
		return s.limits
	}
	return strings.TrimPrefix(s.limits+"; "+s.failed.Error(), "; ")
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
