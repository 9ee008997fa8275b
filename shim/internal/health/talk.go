package health

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Talk is a connection of lameduck's own to a server. Only await waits.
type Talk struct {
	FD        int // -1: none
	to        unix.Sockaddr
	failed    error // why there is none
	connected bool
	up, down  flow   // to the server, and from it
	conns     *Conns // that list the connection; nil: none, for a Unix socket
}

// open makes a socket, for connect.
func (t *Talk) open(family int, to unix.Sockaddr) {
	t.to = to
	t.FD, t.failed = newSocket(family)
}

// newTalk begins to send a request.
func newTalk(request string, family int, to unix.Sockaddr) *Talk {
	t := &Talk{up: flow{buf: []byte(request), end: len(request)}, down: flow{buf: make([]byte, bufferLen)}}
	t.open(family, to)
	return t
}

// Talk begins to send a request to an address, from another one if that is valid. What cannot even begin
// fails with the first Step.
func (p *Conns) Talk(to, from netip.AddrPort, request string) *Talk {
	family, addr := sockaddr(to)
	t := newTalk(request, family, addr)
	t.conns = p
	if t.failed == nil && from.IsValid() {
		_, addr = sockaddr(from)
		t.failed = unix.Bind(t.FD, addr)
	}
	return t
}

// Step does what is possible without waiting, and returns how many bytes have come. The error is that of
// the connection.
func (t *Talk) Step() (n int, err error) {
	if !t.connected {
		err = t.failed
		if err == nil {
			err = t.conns.connect(t.FD, t.to)
		}
		t.connected = err == nil
		if err == unix.EINPROGRESS || err == unix.EALREADY {
			err = nil
		}
	}
	if t.connected {
		n, err = t.down.read(t.FD)
		t.up.write(t.FD)
	}
	return n, err
}

// events returns what to wait for.
func (t *Talk) events() unix.PollFd {
	return events(t.FD, t.connected && t.down.canRead(), !t.connected || t.up.end > 0)
}

// await waits until there is something to do, or a signal comes, and reports whether there was time left.
func (t *Talk) await(deadline time.Time) bool {
	left := min(time.Until(deadline), time.Hour)
	if left > 0 {
		unix.Poll([]unix.PollFd{t.events()}, int(left/time.Millisecond)+1)
	}
	return left > 0
}

// Answer returns what has been received.
func (t *Talk) Answer() string { return string(t.down.buf[:t.down.end]) }

// IsOver reports whether the server will send nothing more.
func (t *Talk) IsOver() bool { return t.down.eof }

// Close closes the connection, if any.
func (t *Talk) Close(reset bool) {
	if t.FD >= 0 {
		t.conns.noteClose(t.FD)
		closeSocket(t.FD, reset)
		t.FD = -1
		t.connected = false
	}
}
