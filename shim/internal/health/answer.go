package health

import (
	"bytes"
	"strings"
)

// headLen is how much of a request is read before it is answered anyway.
const headLen = 8 << 10

const (
	healthy   = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nok\n"
	unhealthy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nstopping\n"
)

// request is what the bytes that came so far are.
type request uint8

const (
	partial  request = iota
	complete         // it can be answered
	foreign          // it is not HTTP/1
)

// classify looks at the head of a request; over says that no more will come of it.
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

// answer is the response to a request in this mode. That to HEAD has no body.
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
