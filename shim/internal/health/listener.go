package health

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// Listener answers health checks. Serve runs on a goroutine of its own; the other
// methods may be called from any goroutine.
type Listener struct {
	targets []netip.AddrPort // tried in order
	wake    int              // an eventfd(2), written when the mode changes
	mode    atomic.Uint32
	conns   *Conns

	// The rest belongs to Serve.
	limits  limits
	fd      int // the listening socket; -1 in mode Close
	clients [maxClients]client
	pollSet []unix.PollFd
}

// Open returns a Listener that listens, whose connections conns lists; Serve accepts. Only Open can
// fail.
func Open(s check.Spec, conns *Conns) (*Listener, error) {
	if err := checkTarget(s.Target); err != nil {
		return nil, err
	}
	fd, err := listen(s.Listen)
	wake, failed := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err = cmp.Or(err, failed); err != nil {
		return nil, fmt.Errorf("cannot listen on %v: %w", check.Spec{Listen: s.Listen}, err)
	}
	var stat unix.Stat_t
	unix.Fstat(fd, &stat)
	conns.Listener = uint32(stat.Ino)
	l := &Listener{targets: s.Targets(), wake: wake, limits: defaultLimits, fd: fd, conns: conns}
	for i := range l.clients {
		l.clients[i] = l.noClient(make([]byte, bufferLen), make([]byte, bufferLen))
	}
	return l, nil
}

// SetMode sets how checks are treated, and returns before the change is made. A
// socket that mode Close has closed stays closed.
func (l *Listener) SetMode(mode check.Mode) {
	l.mode.Store(uint32(mode))
	unix.Write(l.wake, []byte{0: 1, 7: 0})
}

func (l *Listener) currentMode() check.Mode { return check.Mode(l.mode.Load()) }

// relays reports whether a new request is relayed.
func (l *Listener) relays() bool { return l.currentMode() == check.Pass && len(l.targets) > 0 }

// Serve answers checks, and does not return. It takes a thread while waiting.
func (l *Listener) Serve() {
	for {
		l.pollOnce()
	}
}

// pollOnce waits until a socket is ready or a limit has passed, and serves all clients:
// they are few. A new client comes last, so that the bytes that have come count when
// another client gives its place to it.
func (l *Listener) pollOnce() {
	defer func() {
		if recover() != nil { // a fault of lameduck's own costs the clients their connections
			for i := range l.clients {
				l.evict(&l.clients[i])
			}
		}
	}()
	timeout := l.prepare()
	_, err := unix.Poll(l.pollSet, timeout)
	if err != nil && err != unix.EINTR { // no memory, or a limit below the number of open files: do not spin
		time.Sleep(l.limits.retry)
	}
	unix.Read(l.wake, make([]byte, 8))
	for i := range l.clients {
		if l.clients[i].conn >= 0 {
			l.serve(&l.clients[i])
		}
	}
	if l.pollSet[1].Revents != 0 {
		l.accept()
	}
}

// prepare ends what has lasted too long, makes the poll set, the eventfd first and the
// listening socket second, and returns how long poll(2) may wait, in milliseconds: -1,
// forever, without clients.
func (l *Listener) prepare() (timeout int) {
	if l.currentMode() == check.Close {
		closeSocket(l.fd, false) // the kernel resets the connections in the accept queue
		l.fd = -1
	}
	l.pollSet = append(l.pollSet[:0], events(l.wake, true, false), events(l.fd, true, false))
	timeout = -1
	for i := range l.clients {
		c := &l.clients[i]
		if c.conn < 0 {
			continue
		}
		left := max(0, int((l.limit(c)-time.Since(c.lastByte))/time.Millisecond)+1)
		switch {
		case left > 0:
		case c.target.FD < 0 && l.relays():
			l.relay(c)
		default:
			l.evict(c)
		}
		if timeout < 0 || left < timeout {
			timeout = left
		}
		ofClient := events(c.conn, c.target.up.canRead(), c.target.down.end > 0)
		l.pollSet = append(l.pollSet, ofClient, c.target.events())
	}
	return timeout
}

// events returns the events to wait for on a socket. One that needs nothing is left out:
// POLLERR and POLLHUP cannot be masked, and would spin the loop.
func events(fd int, in, out bool) unix.PollFd {
	p := unix.PollFd{Fd: int32(fd)}
	if in {
		p.Events |= unix.POLLIN
	}
	if out {
		p.Events |= unix.POLLOUT
	}
	if p.Events == 0 {
		p.Fd = -1
	}
	return p
}

// accept accepts a client. If no place or no descriptor is free, the client that has been
// silent longest is reset.
func (l *Listener) accept() {
	fd, _, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err == unix.EAGAIN || err == unix.ECONNABORTED {
		return
	}
	var oldest *client // a free place, if one is enough, or the client that has been silent longest
	for i := range l.clients {
		c := &l.clients[i]
		if c.conn < 0 && err != nil {
			continue
		}
		if oldest == nil || c.lastByte.Before(oldest.lastByte) {
			oldest = c
		}
	}
	if oldest == nil {
		time.Sleep(l.limits.retry)
		return
	}
	l.evict(oldest)
	if err == nil {
		l.conns.opens.Add(1)
		oldest.conn = fd
		oldest.lastByte = time.Now()
	}
}
