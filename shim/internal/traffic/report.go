package traffic

import (
	"net/netip"
	"slices"
	"time"
)

// Accepted is how many connections have come since the start.
func (j *Judge) Accepted() int { return j.accepted }

// Report is what there is to tell of a hold.
type Report struct {
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

// Report is what was found until the last look.
func (j *Judge) Report() Report {
	j.lengthen(int(j.now.Sub(j.start) / time.Second))
	a, others := j.total(j.cfg.IgnoreProbes), j.total(true)
	return Report{
		Accepted: j.accepted, More: j.lost, LastNew: a.opened, LastByte: a.moved,
		LastOther: others.opened, LastPeer: j.latest.peer,
		Listeners: j.last.listeners, Open: j.last.open, InFlight: j.last.inFlight, GivenUp: j.last.givenUp,
		PerSecond: slices.Clone(j.perSecond), Patterns: j.patterns(),
	}
}
