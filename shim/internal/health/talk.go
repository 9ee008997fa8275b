package health

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Talk is a connection of lameduck's own to a server, on which lameduck sends first. Only exchange waits.
type Talk struct {
	fd        int
	connect   func() error
	connected bool
	up, down  flow
	conns     *Conns // that list the connection; nil: none
}

func newTalk(fd int, connect func() error, request []byte) *Talk {
	return &Talk{
		fd: fd, connect: connect,
		up: flow{buf: request, end: len(request)}, down: flow{buf: make([]byte, bufferLen)},
	}
}

// Talk begins to send a request to an address, from another one if that is valid.
func (p *Conns) Talk(to, from netip.AddrPort, request []byte) (*Talk, error) {
	fd, err := newSocket(to)
	if err == nil && from.IsValid() {
		err = unix.Bind(fd, sockaddr(from))
	}
	if err != nil {
		closeSocket(fd, false)
		return nil, err
	}
	t := newTalk(fd, func() error { return p.connectTarget(fd, to) }, request)
	t.conns = p
	return t, nil
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
	t.up.write(t.fd)
	_, err := t.down.read(t.fd)
	return err
}

// FD returns the descriptor.
func (t *Talk) FD() int { return t.fd }

// Answer returns what has been received.
func (t *Talk) Answer() []byte { return t.down.buf[:t.down.end] }

// IsOver reports whether the server will send nothing more.
func (t *Talk) IsOver() bool { return t.down.eof }

// End sends a last word, and closes the connection.
func (t *Talk) End(last []byte) {
	if t.connected && len(last) > 0 {
		unix.SendmsgN(t.fd, last, nil, nil, unix.MSG_NOSIGNAL)
	}
	t.conns.markClosed(t.fd)
	unix.Close(t.fd)
}
