package traffic

import (
	"net/netip"
	"slices"
	"time"
)

// Accepted is how many connections have come since the start.
func (j *Tracker) Accepted() int { return j.accepted }

// Summary is what there is to tell of a hold.
type Summary struct {
	Accepted          int        // connections since the start
	More              bool       // and others that nobody has seen, perhaps
	LastNew, LastByte time.Time  // zero: none, as far as it counts
	LastOther         time.Time  // the last new connection that is no part of a pattern
	LastPeer          netip.Addr // who was active last, and is no part of one; invalid: nobody
	Listeners         int        // at the last look, as what follows
	Open, InFlight    int
	GivenUp           int       // of those that seemed in flight
	PerSecond         []int     // new connections in each second from the start, for an hour
	Patterns          []Pattern // what may be probes, ignored or not; the most frequent first
}

// Summary is what was found until the last look.
func (j *Tracker) Summary() Summary {
	j.lengthen(int(j.now.Sub(j.start) / time.Second))
	a, others := j.total(j.cfg.IgnoreProbes), j.total(true)
	return Summary{
		Accepted: j.accepted, More: j.missed, LastNew: a.opened, LastByte: a.moved,
		LastOther: others.opened, LastPeer: j.lastActive.peer,
		Listeners: j.lastSample.listeners, Open: j.lastSample.open, InFlight: j.lastSample.inFlight, GivenUp: j.lastSample.givenUp,
		PerSecond: slices.Clone(j.perSecond), Patterns: j.patterns(),
	}
}
