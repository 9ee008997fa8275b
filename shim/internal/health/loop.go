package health

import (
	"time"

	"golang.org/x/sys/unix"
)

// acceptBurst is how many connections are accepted before the other clients are
// served again.
const acceptBurst = 128

// Serve answers checks until Close. Serve belongs on a goroutine of its own, and
// takes a thread while waiting.
func (l *Listener) Serve() {
	if !l.state.CompareAndSwap(opened, serving) {
		return
	}
	defer close(l.done)
	for l.state.Load() == serving {
		l.pollOnce()
	}
	l.release()
}

// pollOnce waits until a socket is ready or a deadline has passed, and serves.
func (l *Listener) pollOnce() {
	l.now = time.Now()
	if l.currentMode() == Close {
		l.stopListening() // the kernel resets the connections in the accept queue
	}
	l.buildPollSet()
	_, err := unix.Poll(l.pollSet, l.timeout())
	l.now = time.Now()
	switch err {
	case nil:
		l.serveReady()
	case unix.EINTR:
	default: // no memory, or a limit below the number of open files: do not spin
		pause := unix.NsecToTimespec(int64(l.timeouts.acceptRetry))
		unix.Ppoll(nil, &pause, nil)
	}
	l.expire()
}

// buildPollSet lists the sockets to wait for, the eventfd first. Sockets that need
// nothing are left out: POLLERR and POLLHUP cannot be masked, and would spin the
// loop.
func (l *Listener) buildPollSet() {
	l.pollSet = append(l.pollSet[:0], unix.PollFd{Fd: int32(l.wake), Events: unix.POLLIN})
	l.poll(&l.listening, events(!l.acceptPaused(), false))
	for i := range l.clients {
		c := &l.clients[i]
		conn, target := c.events()
		l.poll(&c.conn, conn)
		l.poll(&c.target, target)
	}
}

func (l *Listener) acceptPaused() bool { return l.now.Before(l.pausedUntil) }

// poll adds a socket to the poll set, if events are wanted.
func (l *Listener) poll(s *socket, events int16) {
	s.pollIndex = -1
	if events != 0 && s.fd >= 0 {
		s.pollIndex = len(l.pollSet)
		l.pollSet = append(l.pollSet, unix.PollFd{Fd: int32(s.fd), Events: events})
	}
}

// ready reports whether poll(2) returned an event for the socket.
func (l *Listener) ready(s socket) bool {
	return s.pollIndex >= 0 && l.pollSet[s.pollIndex].Revents != 0
}

// events returns the events to wait for on both sockets of a client.
func (c *client) events() (conn, target int16) {
	switch c.phase {
	case free:
		return 0, 0
	case reading, closing:
		return unix.POLLIN, 0
	case connecting:
		target = unix.POLLOUT
	case relaying:
		target = events(c.down.canRead(), !c.up.isEmpty())
	}
	return events(c.up.canRead(), !c.down.isEmpty()), target
}

func events(in, out bool) (set int16) {
	if in {
		set |= unix.POLLIN
	}
	if out {
		set |= unix.POLLOUT
	}
	return set
}

// timeout returns how long poll(2) waits, in milliseconds rounded up: -1, forever,
// without clients.
func (l *Listener) timeout() int {
	var next time.Time
	if l.listening.fd >= 0 && l.acceptPaused() {
		next = l.pausedUntil
	}
	for c := range l.active() {
		if next.IsZero() || c.deadline.Before(next) {
			next = c.deadline
		}
	}
	if next.IsZero() {
		return -1
	}
	return int(max(0, next.Sub(l.now)+time.Millisecond-1) / time.Millisecond)
}

// serveReady serves the clients that poll(2) returned, and then accepts new clients.
func (l *Listener) serveReady() {
	if l.pollSet[0].Revents != 0 {
		unix.Read(l.wake, make([]byte, 8))
	}
	for c := range l.active() {
		conn, target := l.ready(c.conn), l.ready(c.target)
		if conn || target {
			l.serve(c, conn, target)
		}
	}
	moreWait := l.ready(l.listening) && l.currentMode() != Close && l.accept()
	l.connectAdmitted(moreWait)
}

// serve serves a client. The arguments say which of its sockets may be ready.
func (l *Listener) serve(c *client, conn, target bool) {
	switch c.phase {
	case connecting, relaying:
		l.relay(c, conn, target)
	case reading:
		l.readHead(c)
	case closing:
		l.discard(c)
	}
}

// accept accepts waiting connections, and reports whether more may wait. Without a
// free descriptor a client is reset to make room; without a client to reset, accepting
// pauses. Only the first connection is certain to exist, since accept(2) takes a
// descriptor before the queue is read.
func (l *Listener) accept() (moreWait bool) {
	for i := range acceptBurst {
		fd, from, err := unix.Accept4(l.listening.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch {
		case err == nil:
			l.opens.Add(1)
			l.now = time.Now()
			l.admit(fd, addrPort(from).Addr())
		case err == unix.EAGAIN:
			return false
		case connectionFailed(err):
			l.opens.Add(1)
		case i > 0 && scarce(err):
			return false
		case !scarce(err) || !l.evictOne():
			l.pausedUntil = l.now.Add(l.timeouts.acceptRetry)
			return false
		}
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(l.listening.fd), Events: unix.POLLIN}}, 0)
	return n > 0
}

// connectionFailed reports whether accept(2) failed because of the connection taken
// from the queue.
func connectionFailed(err error) bool {
	switch err {
	case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.ENETDOWN, unix.ENETUNREACH,
		unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET, unix.ETIMEDOUT:
		return true
	}
	return false
}

// scarce reports whether descriptors are scarce: closing another connection may help.
func scarce(err error) bool { return err == unix.EMFILE || err == unix.ENFILE }

// expire drops the clients whose deadline has passed.
func (l *Listener) expire() {
	for c := range l.active() {
		if !l.now.Before(c.deadline) {
			l.evict(c)
		}
	}
}
