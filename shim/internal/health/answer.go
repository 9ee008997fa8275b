package health

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// headLen is how much of a request is read before it is answered anyway.
const headLen = 8 << 10

const (
	healthy   = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nok\n"
	unhealthy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nstopping\n"
)

// request says what the first bytes of a client are.
type request uint8

const (
	partial  request = iota
	complete         // can be answered
	foreign          // not HTTP/1
)

// classify looks at the head of a request. Over says that no more of it will come.
func classify(head []byte, over bool) request {
	text := bytes.TrimLeft(head, "\r\n") // RFC 9112, 2.2: empty lines before a request are ignored
	switch {
	case len(text) > 0 && !letter(text[0]):
		return foreign
	case len(text) == 0 && over:
		return foreign
	case over, len(head) >= headLen, bytes.Contains(text, []byte("\r\n\r\n")), bytes.Contains(text, []byte("\n\n")):
		return complete
	}
	return partial
}

func letter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// answer returns the response to a request. The response to HEAD has no body.
func answer(mode Mode, head []byte) string {
	text := healthy
	if mode != Pass {
		text = unhealthy
	}
	if bytes.HasPrefix(bytes.TrimLeft(head, "\r\n"), []byte("HEAD ")) {
		text = text[:strings.Index(text, "\r\n\r\n")+4]
	}
	return text
}

// ask reads more of the head of a request, and replies when it is complete.
func (l *Listener) ask(c *client) {
	head := &c.up
	n, err := unix.Read(c.conn.fd, head.buffer()[head.end:headLen])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return
	case err != nil:
		l.drop(c, true)
		return
	case n > 0:
		c.spoke, c.moved = true, l.now
	}
	head.end += n
	switch classify(head.buf[:head.end], n == 0) {
	case foreign:
		l.drop(c, head.end > 0) // a client that only connects has succeeded
	case complete:
		l.reply(c, n == 0)
	}
}

// reply sends the answer. The client may have sent more than was read: closing now
// would reset the connection, and the answer would be lost.
func (l *Listener) reply(c *client, over bool) {
	text := answer(l.during(), c.up.buf[:c.up.end])
	n, err := send(c.conn.fd, []byte(text))
	if err != nil || n < len(text) { // the client has not even read what came before
		l.drop(c, true)
		return
	}
	if over {
		l.drop(c, false)
		return
	}
	unix.Shutdown(c.conn.fd, unix.SHUT_WR)
	c.phase, c.moved, c.deadline = lingering, l.now, l.now.Add(l.limits.linger)
}

// linger discards what the client still sends, until the client closes.
func (l *Listener) linger(c *client) {
	n, err := unix.Read(c.conn.fd, c.up.buffer())
	if n > 0 || err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	l.drop(c, false)
}
