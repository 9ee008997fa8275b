package health

import (
	"bytes"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
)

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
