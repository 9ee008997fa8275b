package health

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Talk is a connection of lameduck's own to a server, on which lameduck sends first. Only exchange waits.
type Talk struct {
	FD        int // -1: none
	connect   func() error
	connected bool
	up, down  flow
	conns     *Conns // that list the connection; nil: none
}

func newTalk(fd int, connect func() error, request string) *Talk {
	return &Talk{
		FD: fd, connect: connect,
		up: flow{buf: []byte(request), end: len(request)}, down: flow{buf: make([]byte, bufferLen)},
	}
}

// Talk begins to send a request to an address, from another one if that is valid. What cannot even begin
// fails with the first Step.
func (p *Conns) Talk(to, from netip.AddrPort, request string) *Talk {
	fd, err := newSocket(to)
	if err == nil && from.IsValid() {
		err = unix.Bind(fd, sockaddr(from))
	}
	t := newTalk(fd, func() error {
		if err != nil {
			return err
		}
		return p.connect(fd, to)
	}, request)
	t.conns = p
	return t
}

// Step does what is possible without waiting. The error is that of the connection.
func (t *Talk) Step() error {
	if !t.connected {
		err := t.connect()
		if err == unix.EINPROGRESS || err == unix.EALREADY {
			return nil
		}
		if err != nil {
			return err
		}
		t.connected = true
	}
	t.up.write(t.FD)
	_, err := t.down.read(t.FD)
	return err
}

// Answer returns what has been received.
func (t *Talk) Answer() []byte { return t.down.buf[:t.down.end] }

// IsOver reports whether the server will send nothing more.
func (t *Talk) IsOver() bool { return t.down.eof }

// End sends a last word, and closes the connection.
func (t *Talk) End(last string) {
	if t.connected {
		unix.SendmsgN(t.FD, []byte(last), nil, nil, unix.MSG_NOSIGNAL)
	}
	t.conns.noteClose(t.FD)
	closeSocket(t.FD, false)
}
