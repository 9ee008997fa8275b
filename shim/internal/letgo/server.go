package letgo

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
)

// Server is what listens at the local address of kept connections.
type Server struct {
	At    netip.AddrPort
	Known *ledger.Conn // a connection to it
	Answer
	way way

	// For connections that are idle at times, and for those that are never idle for so long: the last of a
	// pool, which have all its requests.
	usual, hot limit
}

// Answer is what a server speaks, as it has answered to connections of lameduck's own.
type Answer struct {
	HTTP2 bool   // without TLS
	HTTP1 bool   // too
	Alone bool   // HTTP2 alone, for certain
	Relay bool   // copies bytes: what has answered is behind it
	Else  string // what came of the question if not HTTP2, in words
}

// way is how the clients of a server are asked to choose again.
type way uint8

const (
	unknown way = iota // the server has not been asked yet
	never
	closing // their connections are closed while they are idle
	notice  // GOAWAY
)

// Goaway is the frame by which a server of HTTP/2 that wants to leave asks the client to open no
// further stream: GOAWAY of the highest stream, with NO_ERROR (RFC 9113, section 6.8). The client
// ends the streams that are open, and connects again, through its balancer. No stream is lost that is
// on its way, in contrast to a request on a connection that is closed.
const Goaway = "\x00\x00\x08\x07\x00\x00\x00\x00\x00\x7f\xff\xff\xff\x00\x00\x00\x00"

// Words of lameduck's own to a server. One that speaks HTTP/2 answers the preface of a client with SETTINGS (RFC
// 9113, section 3.4), and one that speaks nothing else answers HTTP/1.1 with no HTTP/1. The 16 settings of the
// preface mean nothing, as those of browsers do that keep servers used to it: they give it a length that no other
// connection of a relay has.
const (
	Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x60\x04\x00\x00\x00\x00\x00" +
		"\x0a\x0a\x00\x00\x00\x00\x1a\x1a\x00\x00\x00\x00\x2a\x2a\x00\x00\x00\x00\x3a\x3a\x00\x00\x00\x00" +
		"\x4a\x4a\x00\x00\x00\x00\x5a\x5a\x00\x00\x00\x00\x6a\x6a\x00\x00\x00\x00\x7a\x7a\x00\x00\x00\x00" +
		"\x8a\x8a\x00\x00\x00\x00\x9a\x9a\x00\x00\x00\x00\xaa\xaa\x00\x00\x00\x00\xba\xba\x00\x00\x00\x00" +
		"\xca\xca\x00\x00\x00\x00\xda\xda\x00\x00\x00\x00\xea\xea\x00\x00\x00\x00\xfa\xfa\x00\x00\x00\x00"
	Options = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nUser-Agent: lameduck\r\nConnection: close\r\n\r\n"
)

// IsHTTP2 reports whether the beginning of the answer to Preface is that of HTTP/2, a SETTINGS frame,
// and whether that is certain.
func IsHTTP2(answer string) (is, isCertain bool) {
	if len(answer) < 9 {
		return false, answer != "" && answer[0] != 0
	}
	length := int(answer[1])<<8 + int(answer[2])
	return answer[0] == 0 && length%6 == 0 && answer[3:9] == "\x04\x00\x00\x00\x00\x00", true
}

// IsHTTP1 reports whether the beginning of the answer to Options is that of HTTP/1, and whether that is
// certain.
func IsHTTP1(answer string) (is, isCertain bool) {
	const version = "HTTP/1."
	is = strings.HasPrefix(answer, version)
	return is, is || !strings.HasPrefix(version, answer)
}

// TakeUnknown returns the servers that are to be asked what they speak, once each.
func (a *Asker) TakeUnknown() (servers []*Server) {
	for _, y := range a.servers {
		if y.way == unknown {
			y.way = never // until it answers
			servers = append(servers, y)
		}
	}
	return servers
}

// NoteAnswer notes what a server has answered. On a port that is named, a server that also speaks
// HTTP/1 is one of HTTP/2. Requests of a relay of HTTP/2 come several at a time.
func (a *Asker) NoteAnswer(y *Server, answer Answer) {
	y.Answer = answer
	isNamed := slices.Contains(a.cfg.Goaway, y.At.Port())
	y.way = never
	switch {
	case answer.Relay:
	case answer.HTTP2 && (isNamed || answer.Alone && slices.Contains(a.cfg.Goaway, Auto)):
		y.way = notice
	case a.cfg.CloseIdle:
		y.way = closing
	}
	a.figures.Answered = append(a.figures.Answered, *y)
	if y.Moves() && !slices.Contains(a.figures.GoawayPorts, y.At.Port()) {
		a.figures.GoawayPorts = append(a.figures.GoawayPorts, y.At.Port())
	}
}

// Moves reports whether GOAWAY is sent to the server's clients.
func (y *Server) Moves() bool { return y.way == notice }

// addServer returns the server of a connection, and adds one that is not known.
func (a *Asker) addServer(c *ledger.Conn) *Server {
	y := a.servers[c.Local]
	if y == nil {
		y = &Server{At: c.Local, Known: c, usual: limit{idle: minIdle}, hot: limit{idle: hotIdle, proof: -enoughCycles}}
		a.servers[c.Local] = y
	}
	return y
}

// minUnsent is how long a server must have sent nothing before GOAWAY is sent, longer than a pause that
// samples miss. In dense traffic there may be no connection on which that is so.
const minUnsent = 30 * time.Millisecond
