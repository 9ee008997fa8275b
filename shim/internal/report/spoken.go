package report

import (
	"slices"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
)

// Spoken returns what a server has answered that was asked what it speaks, and whether the user has to know.
// The ports are those of --goaway.
func Spoken(y letgo.Server, goaway []uint16) (text string, isWarning bool) {
	port := InWords("port %d ", y.At.Port())
	switch {
	case y.Relay:
		return port + "is that of a proxy that copies the bytes of HTTP/2: its clients are sent no GOAWAY", true
	case y.Moves() && y.HTTP1:
		return port + "also speaks HTTP/1: clients that do so lose a request by GOAWAY", true
	case y.Moves():
		return port + "speaks HTTP/2: its clients are sent GOAWAY", false
	case y.HTTP2:
		return port + "speaks HTTP/2, and perhaps HTTP/1: GOAWAY is sent there if --goaway names it", false
	}
	isNamed := slices.Contains(goaway, y.At.Port())
	return port + "does not speak HTTP/2 without TLS (" + y.Else + "): no GOAWAY is sent there", isNamed
}
