package report

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
)

// Spoken returns what the user has to know of a server that was asked what it speaks, "" for nothing. The
// ports are those of --goaway.
func Spoken(y *letgo.Server, goaway []uint16) string {
	port := y.At.Port()
	switch {
	case y.Relay:
		return InWords("port %d is that of a proxy that copies the bytes of HTTP/2: its clients are sent no GOAWAY", port)
	case y.Moves() && y.HTTP1:
		return InWords("port %d also speaks HTTP/1: clients that do so lose a request by GOAWAY", port)
	case !y.Moves() && slices.Contains(goaway, port):
		return InWords("port %d does not speak HTTP/2 without TLS (%s): no GOAWAY is sent there", port, y.Else)
	}
	return ""
}
