package health

import (
	"time"

	"golang.org/x/sys/unix"
)

// burst is how many clients are taken in before the others have their turn again:
// few enough that a client is heard before those behind it could evict it.
const burst = slots / 4

// Serve answers until Close. It belongs on a goroutine of its own, and takes a
// thread while it waits.
func (l *Listener) Serve() {
	if !l.state.CompareAndSwap(opened, serving) {
		return
	}
	defer close(l.done)
	for l.state.Load() == serving {
		l.round()
	}
	l.release()
}

// during is the mode.
func (l *Listener) during() Mode { return Mode(l.mode.Load()) }

// round waits until there is something to do, and does it.
func (l *Listener) round() {
	l.now = time.Now()
	if l.during() == Close && l.fd >= 0 {
		unix.Close(l.fd) // what waits to be accepted is reset
		l.fd = -1
	}
	l.gather()
	_, err := unix.Poll(l.polled, l.timeout())
	l.now = time.Now()
	switch err {
	case nil:
		l.attend()
	case unix.EINTR:
	default: // no memory, or a limit lower than what is open: not to be tried over and over
		limit := unix.NsecToTimespec(int64(l.limits.pause))
		unix.Ppoll(nil, &limit, nil)
	}
	l.expire()
}

// gather makes the list of what to wait for. Nobody is in it of whom nothing is
// wanted: an error that we cannot take would wake us for ever.
func (l *Listener) gather() {
	l.polled = l.polled[:0]
	l.poll(l.wake, unix.POLLIN)
	l.at = -1
	if l.fd >= 0 && !l.now.Before(l.paused) {
		l.at = l.poll(l.fd, unix.POLLIN)
	}
	for i := range l.slots {
		s := &l.slots[i]
		client, target := s.wants()
		s.atClient, s.atTarget = l.poll(s.client, client), l.poll(s.target, target)
	}
}

// wants are the events to wait for at either end.
func (s *slot) wants() (client, target int16) {
	switch s.phase {
	case asking, lingering:
		return unix.POLLIN, 0
	case connecting:
		target = unix.POLLOUT
	case passing:
		target = events(s.down.wants(), !s.up.empty())
	case free:
		return 0, 0
	}
	return events(s.up.wants(), !s.down.empty()), target
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

func (l *Listener) poll(fd int, events int16) (at int) {
	if events == 0 {
		return -1
	}
	l.polled = append(l.polled, unix.PollFd{Fd: int32(fd), Events: events})
	return len(l.polled) - 1
}

// told reports whether there is news of what is there in the list.
func (l *Listener) told(at int) bool { return at >= 0 && l.polled[at].Revents != 0 }

// timeout is how long to wait, in milliseconds: for ever where nobody is there.
func (l *Listener) timeout() int {
	next := l.paused
	if l.fd < 0 || !l.now.Before(l.paused) {
		next = time.Time{}
	}
	for i := range l.slots {
		if s := &l.slots[i]; s.phase != free && (next.IsZero() || s.until.Before(next)) {
			next = s.until
		}
	}
	if next.IsZero() {
		return -1
	}
	return int(max(0, next.Sub(l.now)+time.Millisecond-1) / time.Millisecond)
}

// attend does what there is to do, for new clients last.
func (l *Listener) attend() {
	if l.told(0) {
		unix.Read(l.wake, make([]byte, 8))
	}
	for i := range l.slots {
		if s := &l.slots[i]; l.told(s.atClient) || l.told(s.atTarget) {
			l.serve(s)
		}
	}
	if l.told(l.at) && l.during() != Close {
		l.accept()
	}
}

func (l *Listener) serve(s *slot) {
	switch s.phase {
	case connecting, passing:
		l.pass(s)
	case asking:
		l.ask(s)
	case lingering:
		l.linger(s)
	}
}

// accept takes in those who wait. Where no descriptor is free somebody must go;
// where nobody is there to go, it is tried again later. Only of the first is it
// certain that he waits: without a descriptor the kernel does not look.
func (l *Listener) accept() {
	for i := range burst {
		client, _, err := unix.Accept4(l.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch {
		case err == nil:
			l.opens.Add(1)
			l.admit(client)
		case err == unix.EAGAIN:
			return
		case gone(err):
			l.opens.Add(1)
		case i > 0 && scarce(err):
			return
		case !scarce(err) || !l.evict(nil):
			l.paused = l.now.Add(l.limits.pause)
			return
		}
	}
}

// gone reports whether accept(2) failed for the one who waited, and not for us.
func gone(err error) bool {
	switch err {
	case unix.EINTR, unix.ECONNABORTED, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.ENETDOWN, unix.ENETUNREACH,
		unix.EHOSTDOWN, unix.EHOSTUNREACH, unix.ENONET, unix.ETIMEDOUT:
		return true
	}
	return false
}

// scarce reports whether an end of another connection may help.
func scarce(err error) bool { return err == unix.EMFILE || err == unix.ENFILE }

// expire drops whose time is over.
func (l *Listener) expire() {
	for i := range l.slots {
		if s := &l.slots[i]; s.phase != free && !l.now.Before(s.until) {
			l.drop(s, s.phase != lingering)
		}
	}
}
