package health

import (
	"bytes"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// maxClients is how many clients are served at the same time.
const maxClients = 16

// limits are how long a client may be silent, and a pause.
type limits struct {
	greeting time.Duration // before the first byte, until the client is connected to the target
	request  time.Duration // before and during a request
	kept     time.Duration // on a connection that is kept alive
	end      time.Duration // after an answer, if the connection is to end
	retry    time.Duration // the pause when descriptors or memory are scarce
}

var defaultLimits = limits{
	greeting: 200 * time.Millisecond,
	request:  10 * time.Second,
	kept:     75 * time.Second,
	end:      2 * time.Second,
	retry:    time.Second,
}

// sender says who sent the last byte of a connection.
type sender uint8

const (
	nobody sender = iota
	theClient
	theCommand
)

// client is a connection to the listener and, if relayed, its connection to the
// target.
type client struct {
	conn      int  // -1: no client
	target    int  // -1: none
	connected bool // to the target
	tried     int  // how many targets refused
	answered  bool // here
	up        flow // from the client; also holds the head of a request
	down      flow // to the client
	last      sender
	lastByte  time.Time // or when the client was accepted; zero: no client
}

// noClient returns a free place with two buffers.
func noClient(up, down []byte) client {
	return client{conn: -1, target: -1, up: flow{buf: up}, down: flow{buf: down}}
}

// limit returns how long a client may be silent.
func (l *Listener) limit(c *client) time.Duration {
	passes := l.currentMode() == check.Pass
	switch {
	case c.answered, !passes && c.last == theCommand:
		return l.limits.end
	case passes && c.connected && c.last != nobody:
		return l.limits.kept
	case c.target < 0 && l.relays():
		return l.limits.greeting
	}
	return l.limits.request
}

// serve does what is possible without waiting. During a stop the bytes of a client do not
// prolong its time, and a new request on a relayed connection is not relayed.
func (l *Listener) serve(c *client) {
	n, err := c.up.read(c.conn)
	if err != nil {
		l.drop(c, true)
		return
	}
	if n > 0 && !c.answered {
		if l.currentMode() == check.Pass {
			c.lastByte = time.Now()
		} else if c.last != theClient && c.down.isEmpty() {
			l.closeTarget(c, false)
		}
		c.last = theClient
	}
	switch {
	case c.answered:
		c.up.discard()
	case c.target < 0:
		l.handleRequest(c)
	case !c.connected:
		l.connect(c)
	default:
		n, err = c.down.read(c.target)
		if err != nil {
			l.drop(c, true)
			return
		}
		if n > 0 {
			c.lastByte = time.Now()
			c.last = theCommand
		}
		c.up.write(c.target)
	}
	c.down.write(c.conn)
	if c.up.shut && c.down.shut {
		l.drop(c, false)
	}
}

// handleRequest relays or answers a request when bytes of it have come. A client that
// closes without a byte only wanted to connect.
func (l *Listener) handleRequest(c *client) {
	switch {
	case c.up.isEmpty():
		if c.up.eof {
			l.drop(c, false)
		}
	case l.relays():
		l.connect(c)
	case l.currentMode() == check.Close:
		l.drop(c, true)
	default:
		l.answer(c)
	}
}

// connect begins or continues to connect a client to the first target that accepts. If
// every target refuses, the client is reset.
func (l *Listener) connect(c *client) {
	for ; c.tried < len(l.targets); c.tried++ {
		to := l.targets[c.tried]
		if c.target < 0 {
			fd, err := newSocket(to)
			if err != nil {
				continue
			}
			c.target = fd
		}
		switch l.conns.connect(c.target, to) {
		case nil:
			c.connected = true
			return
		case unix.EINPROGRESS, unix.EALREADY:
			return
		}
		l.closeTarget(c, false)
	}
	l.drop(c, true)
}

// drop closes both connections of a client.
func (l *Listener) drop(c *client, reset bool) {
	closeSocket(c.conn, reset)
	l.closeTarget(c, reset)
	*c = noClient(c.up.buf, c.down.buf)
}

// evict drops a client that has been silent. One that has its answer is not reset: a reset
// might overtake the answer.
func (l *Listener) evict(c *client) { l.drop(c, c.last != theCommand) }

// closeTarget closes the connection to the target, if any.
func (l *Listener) closeTarget(c *client, reset bool) {
	if c.target >= 0 {
		l.conns.noteClose(c.target)
		closeSocket(c.target, reset)
		c.target = -1
		c.connected = false
	}
}

const (
	healthy   = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
	unhealthy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n"
	common    = "Connection: close\r\nContent-Type: text/plain\r\n\r\n"
)

// answer answers a request when its head is complete. What cannot be answered in HTTP/1 is
// reset.
func (l *Listener) answer(c *client) {
	request := bytes.TrimLeft(c.up.buf[:c.up.end], "\r\n") // a server ignores empty lines (RFC 9112, 2.2)
	full := !c.up.canRead()
	switch {
	case len(request) > 0 && (request[0] < 'A' || request[0] > 'z'):
		l.drop(c, true)
		return
	case !full && !bytes.Contains(request, []byte("\r\n\r\n")) && !bytes.Contains(request, []byte("\n\n")):
		return
	}
	text, body := healthy, "ok\n"
	if l.currentMode() != check.Pass {
		text, body = unhealthy, "stopping\n"
	}
	text += common
	if !bytes.HasPrefix(request, []byte("HEAD ")) {
		text += body
	}
	c.down.end = copy(c.down.buf, text)
	c.down.eof = true
	c.up.discard()
	c.answered = true
	c.last = theCommand
	c.lastByte = time.Now()
}
