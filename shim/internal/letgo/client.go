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
	stay  int           // closed, and not by the client in turn
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

// patience returns how long no new connection must have come before the next question: 1, 1, 2 and
// then 4 s.
func (p *client) patience() time.Duration { return time.Second << min(max(p.back-1, 0), 2) }

// mayBeAsked reports whether another connection may be closed, while some were closed lately that
// the client has not closed in turn. One more of these may be open than it has closed, so each
// round is twice as large: some clients notice the end of a connection only when they send the
// next request, which is lost.
func (p *client) mayBeAsked(now ledger.Moment, noneNewFor time.Duration) bool {
	isLeaving := p.stay > p.left && now-p.asked < slowToLeave
	return !isLeaving && p.reset < maxReset && noneNewFor >= p.patience()
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

// The shortest of these times: several jiffies, and longer than most answers that are written in
// parts pause; and a jiffy, which takes more proof.
const (
	minIdle = 20 * time.Millisecond
	hotIdle = 4 * time.Millisecond
)

// limit is how long a connection has to be idle before it is closed.
type limit struct {
	idle    time.Duration
	cleanAt ledger.Moment // the latest clean cycle
	proof   float64       // that requests come one at a time: clean cycles, less enoughCycles for each doubt
}

// enoughCycles is how many clean cycles a server has to show before a connection is closed, and
// evenCycles before one is that is even. As measured, where one of 20 requests takes 5 s beside
// others, nearly all stops cut some 25 requests after 50 cycles, and 5 of 66 stops after 100 to 120.
// In thin traffic a cycle counts as those that would have come at thinRate, as thinCycles at most:
// the end of a slow answer is seen by itself, and few are cut.
const (
	enoughCycles = 150
	evenCycles   = enoughCycles / 2
	thinRate     = 12 // a second
	thinCycles   = 3
)

// thinIdle is how long a connection has been idle that is closed after few cycles, since all in its life
// were alike: uniformCycles at least. Where one request of twenty is slow, one of them was slow in 95 of 100
// lives, and uploads that are answered part by part have fewer parts.
const (
	thinIdle      = 200 * time.Millisecond
	uniformCycles = 60
)

// permits reports whether a connection may be closed after the time that it has been idle for.
func (l *limit) permits(k *Kept) bool {
	isEnough := l.proof >= enoughCycles || k.IsEven() && l.proof >= evenCycles
	isThin := k.idleFor() >= thinIdle && l.proof >= 2*thinCycles && k.isUniform()
	return k.idleFor() >= l.idle && (isEnough || isThin)
}

// note notes what a connection has shown, and for how long it had been idle before. A connection is
// closed after twice the longest pause of an answer, and what follows on a shorter one proves
// nothing: another answer may pause too, or, as in HTTP/2, an answer to an earlier request be still
// to come.
func (l *limit) note(now ledger.Moment, shown evidence, idle time.Duration) {
	switch isLong := 2*idle > l.idle; {
	case shown == doubt:
		l.proof -= enoughCycles
	case shown == goesOn && isLong:
		if l.proof = min(l.proof, 0); idle > l.idle { // it might have been cut
			l.proof -= enoughCycles
		}
		l.idle = 2 * idle
	case shown == clean && isLong:
		l.proof += min(max(1, thinRate*(now-l.cleanAt).Seconds()), thinCycles)
		l.cleanAt = now
	}
}
