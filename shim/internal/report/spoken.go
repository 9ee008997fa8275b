package report

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
)

// Spoken returns what a server has answered that was asked what it speaks, and whether the user has to know.
// The ports are those of --goaway.
func Spoken(y letgo.Server, goaway []uint16) (text string, isWarning bool) {
	port := y.At.Port()
	isNamed := slices.Contains(goaway, port)
	switch {
	case y.Relay:
		return InWords("port %d is that of a proxy that copies the bytes of HTTP/2: its clients are sent no GOAWAY", port), true
	case y.Moves() && y.HTTP1:
		return InWords("port %d also speaks HTTP/1: clients that do so lose a request by GOAWAY", port), true
	case y.Moves():
		return InWords("port %d speaks HTTP/2: its clients are sent GOAWAY", port), false
	case y.HTTP2:
		return InWords("port %d speaks HTTP/2, and perhaps HTTP/1: GOAWAY is sent there if --goaway names it", port), false
	}
	return InWords("port %d does not speak HTTP/2 without TLS (%s): no GOAWAY is sent there", port, y.Else), isNamed
}
