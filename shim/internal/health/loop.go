package health

import (
	"time"

	"golang.org/x/sys/unix"
)

// acceptBurst is how many connections are accepted before the other clients are
// served again.
const acceptBurst = 128

// Serve answers checks until Close. Serve belongs on a goroutine of its own, and
// takes a thread while it waits.
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

// during is the mode.
func (l *Listener) during() Mode { return Mode(l.mode.Load()) }

// pollOnce waits until a socket is ready or a deadline has passed, and serves.
func (l *Listener) pollOnce() {
	l.now = time.Now()
	if l.during() == Close && l.accepting.fd >= 0 {
		unix.Close(l.accepting.fd) // the kernel resets what waits to be accepted
		l.accepting = noEnd
	}
	l.buildPollSet()
	_, err := unix.Poll(l.pollSet, l.timeout())
	l.now = time.Now()
	switch err {
	case nil:
		l.serveReady()
	case unix.EINTR:
	default: // no memory, or a limit below the number of open files: do not spin
		pause := unix.NsecToTimespec(int64(l.limits.pause))
		unix.Ppoll(nil, &pause, nil)
	}
	l.expire()
}

// buildPollSet lists the sockets to wait for, the eventfd first. Sockets that need
// nothing are left out: POLLERR and POLLHUP cannot be masked, and would spin the
// loop.
func (l *Listener) buildPollSet() {
	l.pollSet = l.pollSet[:0]
	l.poll(&end{fd: l.wake}, unix.POLLIN)
	var accept int16
	if !l.now.Before(l.pausedUntil) {
		accept = unix.POLLIN
	}
	l.poll(&l.accepting, accept)
	for i := range l.clients {
		c := &l.clients[i]
		conn, target := c.events()
		l.poll(&c.conn, conn)
		l.poll(&c.target, target)
	}
}

// poll adds a socket to the poll set.
func (l *Listener) poll(e *end, events int16) {
	e.polled = -1
	if events != 0 && e.fd >= 0 {
		e.polled = len(l.pollSet)
		l.pollSet = append(l.pollSet, unix.PollFd{Fd: int32(e.fd), Events: events})
	}
}

// ready reports whether poll(2) returned an event for the socket.
func (l *Listener) ready(e end) bool { return e.polled >= 0 && l.pollSet[e.polled].Revents != 0 }

// events returns what to wait for at either end of a client.
func (c *client) events() (conn, target int16) {
	switch c.phase {
	case free:
		return 0, 0
	case asking, lingering:
		return unix.POLLIN, 0
	case connecting:
		target = unix.POLLOUT
	case relaying:
		target = events(c.down.wants(), !c.up.empty())
	}
	return events(c.up.wants(), !c.down.empty()), target
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

// timeout returns how long poll(2) waits, in milliseconds: forever without clients.
func (l *Listener) timeout() int {
	var next time.Time
	if l.accepting.fd >= 0 && l.now.Before(l.pausedUntil) {
		next = l.pausedUntil
	}
	for i := range l.clients {
		if c := &l.clients[i]; c.phase != free && (next.IsZero() || c.deadline.Before(next)) {
			next = c.deadline
		}
	}
	if next.IsZero() {
		return -1
	}
	return int(max(0, next.Sub(l.now)+time.Millisecond-1) / time.Millisecond)
}

// serveReady serves the clients that poll(2) returned, and then accepts new ones.
func (l *Listener) serveReady() {
	if l.pollSet[0].Revents != 0 {
		unix.Read(l.wake, make([]byte, 8))
	}
	for i := range l.clients {
		c := &l.clients[i]
		if conn, target := l.ready(c.conn), l.ready(c.target); conn || target {
			l.serve(c, conn, target)
		}
	}
	moreWait := l.ready(l.accepting) && l.during() != Close && l.accept()
	l.connectAdmitted(moreWait)
}

// serve does what a client waits for. The arguments say which of its sockets may
// be ready.
func (l *Listener) serve(c *client, conn, target bool) {
	switch c.phase {
	case connecting, relaying:
		l.relay(c, conn, target)
	case asking:
		l.ask(c)
	case lingering:
		l.linger(c)
	}
}

// accept takes in the connections that wait, and reports whether more may wait.
// Without a free descriptor a client is reset to make room; without a client to
// reset, accepting pauses. Only the first connection is certain to be there, since
// accept(2) wants a descriptor before it looks at the queue.
func (l *Listener) accept() (moreWait bool) {
	for i := range acceptBurst {
		fd, from, err := unix.Accept4(l.accepting.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
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
		case !scarce(err) || !l.evict():
			l.pausedUntil = l.now.Add(l.limits.pause)
			return false
		}
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(l.accepting.fd), Events: unix.POLLIN}}, 0)
	return n > 0
}

// connectionFailed reports whether accept(2) failed because of the connection that
// was taken from the queue.
func connectionFailed(err error) bool {
	switch err {
	case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.ENETDOWN, unix.ENETUNREACH,
		unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET, unix.ETIMEDOUT:
		return true
	}
	return false
}

// scarce reports whether closing another connection may help.
func scarce(err error) bool { return err == unix.EMFILE || err == unix.ENFILE }

// expire drops the clients whose deadline has passed.
func (l *Listener) expire() {
	for i := range l.clients {
		if c := &l.clients[i]; c.phase != free && !l.now.Before(c.deadline) {
			l.drop(c, c.phase != lingering)
		}
	}
}
