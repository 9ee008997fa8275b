package health

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

// maxClients is how many clients are served at the same time.
const maxClients = 16

// limits are how long a client may be silent, and a pause.
type limits struct {
	greeting time.Duration // before the first byte, until the client is connected to the target
	silence  time.Duration // at any time
	end      time.Duration // after an answer, if the connection is to end
	retry    time.Duration // the pause when descriptors or memory are scarce
}

var defaultLimits = limits{
	greeting: 200 * time.Millisecond,
	silence:  75 * time.Second,
	end:      2 * time.Second,
	retry:    time.Second,
}

// sender says who sent the last byte of a connection.
type sender uint8

const (
	nobody sender = iota
	theClient
	theCommand
	theListener
)

// client is a connection to the listener and, if relayed, its connection to the
// target.
type client struct {
	conn     int  // -1: no client
	target   Talk // whose flows come from the client, and go to it; up also holds the head of a request
	tried    int  // how many targets refused
	last     sender
	lastByte time.Time // or when the client was accepted; zero: no client
}

// noClient returns a free place with two buffers.
func (l *Listener) noClient(up, down []byte) client {
	return client{conn: -1, target: Talk{FD: -1, up: flow{buf: up}, down: flow{buf: down}, conns: l.conns}}
}

// limit returns how long a client may be silent.
func (l *Listener) limit(c *client) time.Duration {
	switch {
	case c.last == theListener, c.last == theCommand && l.currentMode() != check.Pass:
		return l.limits.end
	case c.target.FD < 0 && l.relays():
		return l.limits.greeting
	}
	return l.limits.silence
}

// serve does what is possible without waiting. During a stop the bytes of a client do not
// prolong its time, and a new request on a relayed connection is not relayed.
func (l *Listener) serve(c *client) {
	up, down := &c.target.up, &c.target.down
	n, err := up.read(c.conn)
	if err != nil {
		l.drop(c, true)
		return
	}
	if n > 0 && c.last != theListener {
		if l.currentMode() == check.Pass {
			c.lastByte = time.Now()
		} else if c.last != theClient && down.end == 0 {
			c.target.Close(false)
		}
		c.last = theClient
	}
	switch {
	case c.last == theListener:
		up.discard()
	case c.target.FD >= 0, up.end > 0 && l.relays():
		l.relay(c)
	case up.end == 0:
		if up.eof { // a client that only wanted to connect
			l.drop(c, false)
		}
	case l.currentMode() == check.Close:
		l.drop(c, true)
	default:
		l.answer(c)
	}
	down.write(c.conn)
	if up.shut && down.shut {
		l.drop(c, false)
	}
}

// relay connects a client to the first target that accepts, and relays what there is. If every
// target refuses, or the connection fails, the client is reset.
func (l *Listener) relay(c *client) {
	for ; c.tried < len(l.targets); c.tried++ {
		if c.target.FD < 0 {
			c.target.open(sockaddr(l.targets[c.tried]))
		}
		n, err := c.target.Step()
		if n > 0 {
			c.lastByte = time.Now()
			c.last = theCommand
		}
		if err == nil {
			return
		}
		if c.target.connected {
			break
		}
		c.target.Close(false)
	}
	l.drop(c, true)
}

// drop closes both connections of a client.
func (l *Listener) drop(c *client, reset bool) {
	closeSocket(c.conn, reset)
	c.target.Close(reset)
	*c = l.noClient(c.target.up.buf, c.target.down.buf)
}

// evict drops a client that has been silent. One that has its answer is not reset: a reset
// might overtake the answer.
func (l *Listener) evict(c *client) { l.drop(c, c.last < theCommand) }

const (
	healthy   = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
	unhealthy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n"
	common    = "Connection: close\r\nContent-Type: text/plain\r\n\r\n"
)

// answer answers a request when its head is complete. What cannot be answered in HTTP/1 is
// reset.
func (l *Listener) answer(c *client) {
	up, down := &c.target.up, &c.target.down
	request := strings.TrimLeft(string(up.buf[:up.end]), "\r\n") // a server ignores empty lines (RFC 9112, 2.2)
	switch {
	case len(request) > 0 && (request[0] < 'A' || request[0] > 'z'):
		l.drop(c, true)
		return
	case up.canRead() && !strings.Contains(request, "\r\n\r\n") && !strings.Contains(request, "\n\n"):
		return
	}
	text, body := healthy, "ok\n"
	if l.currentMode() != check.Pass {
		text, body = unhealthy, "stopping\n"
	}
	text += common
	if !strings.HasPrefix(request, "HEAD ") {
		text += body
	}
	down.end = copy(down.buf, text)
	down.eof = true
	up.discard()
	c.last = theListener
	c.lastByte = time.Now()
}
