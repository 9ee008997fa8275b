// Package closer closes connections of our processes for reading, or writes into them, through
// duplicates of the processes' own descriptors: pidfd_getfd(2), Linux 5.6.
package closer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sockdiag"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Closer acts on connections.
type Closer struct {
	// WholePIDNamespace means that all processes of our PID namespace may be ours, rather
	// than our descendants alone.
	WholePIDNamespace bool

	root       procfs.Root
	holders    map[uint32]holder // by the inodes of sockets, as of the last search
	searchedAt time.Time
	refused    error  // why the sockets of a process cannot be duplicated
	unheld     uint64 // the cookie of a connection that the last search did not find
}

// holder is a process with a descriptor of a socket.
type holder struct {
	pid, fd int
	all     []int // the processes with one
}

// searchInterval is the shortest time between two searches, which read the descriptors of
// all processes.
const searchInterval = time.Second

// Ask asks the client of a connection to choose again, if may says so of its present state: by
// a word that is written as if by the server, or, without one, by closing the connection for
// reading. The server then reads the end of the stream after all that has arrived, as if the
// client had left. Ask returns the state in which that was done, or nil. An error means that
// lameduck may not do that; without an error a later call may try again. A connection that no
// process of ours holds is left alone: it has been closed since the sample, unless a later sample
// shows it again. Then a process holds it whose descriptors cannot be read, if there is one.
func (c *Closer) Ask(of *tcp.Socket, word string, may func(*tcp.Socket) bool) (asked *tcp.Socket, err error) {
	h, isKnown := c.holders[of.Inode]
	err = errOther
	if isKnown {
		asked, err = c.try(h, of.Cookie, word, may)
	}
	switch {
	case !errors.Is(err, errOther):
		return asked, err
	case c.unheld == of.Cookie && c.refused != nil:
		return nil, c.refused
	case time.Since(c.searchedAt) < searchInterval:
		return nil, nil
	}
	c.search()
	if _, isKnown = c.holders[of.Inode]; !isKnown {
		c.unheld = of.Cookie
		return nil, nil
	}
	return c.Ask(of, word, may)
}

// errOther means that a descriptor is not that of the socket (anymore).
var errOther = errors.New("another socket")

// try asks the client of a connection that a process held at the last search, if it is still there.
func (c *Closer) try(h holder, cookie uint64, word string, may func(*tcp.Socket) bool) (*tcp.Socket, error) {
	fd, err := duplicate(h)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ESRCH, unix.EBADF: // the process, or its descriptor
		return nil, errOther
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		return nil, nil
	default:
		c.refused = cmp.Or(c.refused, c.explain(h.pid, err))
		return nil, c.refused
	}
	now, err := sockdiag.ReadSocket(fd)
	n := 0
	switch {
	case err != nil || now.Cookie != cookie:
		return nil, errOther
	case !may(&now), word != "" && !c.rests(h, fd, &now):
		return nil, nil
	case word == "":
		err = unix.Shutdown(fd, unix.SHUT_RD)
	default:
		n, err = unix.SendmsgN(fd, []byte(word), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	if err != nil || n != len(word) {
		return nil, nil
	}
	return &now, nil
}

// rests reports whether the server does not stand in the midst of what it writes, between two system
// calls: no thread of a process that has a descriptor has work to do, those that wait for a processor
// included, and no byte has been sent or received while that was found out.
func (c *Closer) rests(h holder, fd int, before *tcp.Socket) bool {
	isAwake := func(pid int) bool {
		p, err := c.root.Process(pid)
		return err == nil && !p.Dead() && !c.root.IsAsleep(pid)
	}
	if !c.root.IsAsleep(h.pid) || slices.ContainsFunc(h.all, isAwake) {
		return false
	}
	now, err := sockdiag.ReadSocket(fd)
	return err == nil && now.Unread == 0 && now.Unsent == 0 &&
		now.Info.Sent == before.Info.Sent && now.Info.Received == before.Info.Received
}

// duplicate returns a descriptor of ours for that of another process.
func duplicate(h holder) (fd int, err error) {
	pidfd, err := unix.PidfdOpen(h.pid, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, h.fd, 0)
}

// search finds the holders of our sockets. To duplicate a descriptor, of several the last is as good
// as any. Processes of other containers may be in our PID namespace, PID 1's too: the control group
// tells them apart.
func (c *Closer) search() {
	c.holders = map[uint32]holder{}
	pids, _ := scope.Processes(c.root, c.WholePIDNamespace)
	for _, pid := range pids {
		if c.WholePIDNamespace && !c.root.SharesCgroups(pid) {
			continue
		}
		_, err := c.root.EachTarget(pid, func(fd int, target []byte) {
			if inode := scope.SocketInode(target); inode != 0 {
				h := c.holders[inode]
				if h.pid != pid {
					h.all = append(h.all, pid)
				}
				c.holders[inode] = holder{pid, fd, h.all}
			}
		})
		if errors.Is(err, os.ErrPermission) {
			// The descriptors of a zombie seem to be root's.
			if p, err := c.root.Process(pid); !p.Dead() && !procfs.Gone(err) {
				c.refused = cmp.Or(c.refused, c.explain(pid, unix.EPERM))
			}
		}
	}
	c.searchedAt = time.Now()
}

// explain returns why a socket of a process cannot be duplicated, and what would help. See
// ptrace(2), "Ptrace access mode checking".
func (c *Closer) explain(pid int, err error) error {
	const remedy = "add the capability SYS_PTRACE"
	_, ownErr := duplicate(holder{pid: os.Getpid(), fd: -1}) // nothing but a filter of system calls forbids that
	switch {
	case err == unix.ENOSYS:
		return errors.New("pidfd_getfd(2) is missing: it needs Linux 5.6 and a seccomp profile that knows it, " +
			"and gVisor has none")
	case err != unix.EPERM:
		return os.NewSyscallError("pidfd_getfd", err)
	case ownErr == unix.EPERM:
		return errors.New("the seccomp profile forbids pidfd_getfd(2): allow it, or " + remedy)
	}
	isHook := c.WholePIDNamespace && os.Getpid() != 1
	if level := c.root.PtraceScope(); level > 1 || level == 1 && isHook {
		return fmt.Errorf("kernel.yama.ptrace_scope is %d: give the flag to the entrypoint, not to a hook, or %s",
			level, remedy)
	}
	return fmt.Errorf("process %d runs as another user, or is not dumpable, or an AppArmor profile forbids it: run all "+
		"processes as one user without no-new-privileges, or lameduck as root with the capability SYS_PTRACE", pid)
}
