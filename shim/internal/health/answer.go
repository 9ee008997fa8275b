package health

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// maxHeadLen is how many bytes of a request are read before the request is answered
// anyway.
const maxHeadLen = 8 << 10

const (
	healthy   = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nok\n"
	unhealthy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nstopping\n"
)

// headKind classifies the first bytes of a client.
type headKind uint8

const (
	incomplete headKind = iota
	complete            // can be answered
	notHTTP             // cannot be answered in HTTP/1
)

// classify classifies the head of a request. With eof, no more bytes will come.
func classify(head []byte, eof bool) headKind {
	text := skipEmptyLines(head)
	switch {
	case len(text) > 0 && !isLetter(text[0]):
		return notHTTP
	case len(text) == 0 && eof:
		return notHTTP
	case eof, len(head) >= maxHeadLen, bytes.Contains(text, []byte("\r\n\r\n")), bytes.Contains(text, []byte("\n\n")):
		return complete
	}
	return incomplete
}

// skipEmptyLines returns the head from the request line on: a server ignores empty lines
// before the request line (RFC 9112, 2.2).
func skipEmptyLines(head []byte) []byte {
	for len(head) > 0 && (head[0] == '\r' || head[0] == '\n') {
		head = head[1:]
	}
	return head
}

func isLetter(c byte) bool { return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' }

// answer returns the response to a request. The response to HEAD has no body.
func answer(mode Mode, head []byte) string {
	text := healthy
	if mode != Pass {
		text = unhealthy
	}
	if bytes.HasPrefix(skipEmptyLines(head), []byte("HEAD ")) {
		text = text[:strings.Index(text, "\r\n\r\n")+4]
	}
	return text
}

// readHead reads more of the head of a request, and replies when the head is
// complete. A client that closes without a byte only wanted to connect: its check
// has passed, so the client is not reset.
func (l *Listener) readHead(c *client) {
	head := &c.up
	n, err := unix.Read(c.conn.fd, head.buffer()[head.end:maxHeadLen])
	switch {
	case wouldBlock(err):
		return
	case err != nil:
		l.drop(c, true)
		return
	case n > 0:
		c.hasSent = true
		c.lastByte = l.now
	}
	head.end += n
	switch eof := n == 0; classify(head.buf[:head.end], eof) {
	case notHTTP:
		l.drop(c, head.end > 0)
	case complete:
		l.reply(c, eof)
	}
}

// reply sends the answer. Without eof the client may have sent more bytes than were
// read: a close would reset the connection, and the answer would be lost.
func (l *Listener) reply(c *client, eof bool) {
	text := answer(l.currentMode(), c.up.buf[:c.up.end])
	n, err := send(c.conn.fd, []byte(text))
	if err != nil || n < len(text) { // the client has not read earlier bytes
		l.drop(c, true)
		return
	}
	if eof {
		l.drop(c, false)
		return
	}
	unix.Shutdown(c.conn.fd, unix.SHUT_WR)
	c.phase = closing
	c.lastByte = l.now
	c.deadline = l.now.Add(l.timeouts.closing)
}

// discard discards the bytes that an answered client still sends, until the client
// closes.
func (l *Listener) discard(c *client) {
	n, err := unix.Read(c.conn.fd, c.up.buffer())
	if n > 0 || wouldBlock(err) {
		return
	}
	l.drop(c, false)
}
