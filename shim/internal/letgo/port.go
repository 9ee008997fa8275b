package letgo

import "time"

// port is what the connections to a port have shown.
type port struct {
	idle  time.Duration // how long a connection has to be idle before it is closed
	clean int           // clean cycles since an answer went on that had seemed complete
}

// minIdle is how long a connection has to be idle before it is closed: several jiffies, and
// longer than most answers that are written in parts pause.
const minIdle = 20 * time.Millisecond

// enoughCycles is how many clean cycles a port has to show before a connection is closed.
const enoughCycles = 50

// note notes that a cycle was clean, or the pause after which an answer went on: another answer
// may pause too, or, as in HTTP/2, an answer to an earlier request be still to come.
func (p *port) note(pause time.Duration, isClean bool) {
	switch {
	case 2*pause > p.idle:
		p.idle = 2 * pause
		p.clean = 0
	case isClean:
		p.clean++
	}
}
