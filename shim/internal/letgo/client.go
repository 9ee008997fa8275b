package letgo

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
)

// client is a peer. Each connection that is closed, or sent GOAWAY on, is a question: the client
// connects again, to another server if its balancer has let go of this one.
type client struct {
	away  int           // such connections for which the peer has not connected again
	left  int           // closed by the client in turn, since it has connected again last
	reset int           // whose client seems to have used the connection once more
	back  int           // answers that the balancer has not let go
	asked ledger.Moment // the latest question, 0 since the latest of these answers
}

// slowToLeave is how long other connections of a client wait for it to close one in turn. Some
// clients notice the end of a connection when they take it from their pool the next time.
const slowToLeave = time.Second

// maxReset is how many connections of a peer, closed while idle, may be used once more. One may
// be bad luck: the request was on its way.
const maxReset = 2

// patience returns how long no new connection must have come before the next question.
func (p *client) patience() time.Duration {
	return [...]time.Duration{1, 1, 2, 4}[min(p.back, 3)] * time.Second
}

// mayBeAsked reports whether another connection may be closed, while some were closed lately that
// the client has not closed in turn. One more of these may be open than it has closed, so each
// round is twice as large: some clients notice the end of a connection only when they send the
// next request, which is lost.
func (p *client) mayBeAsked(leaving int, noneNewFor time.Duration) bool {
	return leaving <= p.left && p.reset < maxReset && noneNewFor >= p.patience()
}

func (p *client) noteClosed(now ledger.Moment) {
	p.away++
	p.asked = now
}

// noteBack notes that the client has connected again.
func (p *client) noteBack() {
	p.away--
	p.left = 0
	if p.asked > 0 {
		p.asked = 0
		p.back++
	}
}

// port is what the connections to a port have shown.
type port struct {
	idle  time.Duration // how long a connection has to be idle before it is closed
	proof int           // that requests come one at a time: clean cycles, less enoughCycles for each doubt
}

// minIdle is how long a connection has to be idle before it is closed: several jiffies, and
// longer than most answers that are written in parts pause.
const minIdle = 20 * time.Millisecond

// enoughCycles is how many clean cycles a port has to show before a connection is closed. As
// measured, where one of 20 requests takes 5 s beside others, nearly all stops cut some 25 requests
// after 50 cycles, and 5 of 66 stops after 100 to 120.
const enoughCycles = 150

// note notes what a connection has shown, and for how long it had been idle before. A connection is
// closed after twice the longest pause of an answer, and what follows on a shorter one proves
// nothing: another answer may pause too, or, as in HTTP/2, an answer to an earlier request be still
// to come.
func (p *port) note(shown evidence, idle time.Duration) {
	switch isLong := 2*idle > p.idle; {
	case shown == doubt:
		p.proof -= enoughCycles
	case shown == goesOn && isLong:
		if p.proof = min(p.proof, 0); idle > p.idle { // it might have been cut
			p.proof -= enoughCycles
		}
		p.idle = 2 * idle
	case shown == clean && isLong:
		p.proof++
	}
}
