package traffic

import (
	"net/netip"
	"slices"
	"time"
)

// Summary has the figures of a hold for the report. Times are zero without such an event.
type Summary struct {
	Accepted  int        // connections since the trigger
	More      bool       // connections may be missing from Accepted
	LastNew   time.Time  // the last new connection that counts
	LastByte  time.Time  // the last byte on a connection that counts
	LastOther time.Time  // the last new connection outside of patterns
	LastPeer  netip.Addr // the peer last active outside of patterns; invalid: no such peer
	Listeners int        // in the latest complete sample, like Open, InFlight and GivenUp
	Open      int
	InFlight  int       // requests that hold
	GivenUp   int       // requests silent for MaxSilence
	PerSecond []int     // new connections in each second from the trigger, for an hour at most
	Patterns  []Pattern // possible health probes, ignored or not, the most frequent first
}

// Summary returns the figures up to the latest sample.
func (t *Tracker) Summary() Summary {
	t.arrivals.lengthen(int(t.now.Sub(t.start) / time.Second))
	counted, others := t.activity(t.cfg.IgnoreProbes), t.activity(true)
	y := &t.lastSample
	return Summary{
		Accepted: t.arrivals.accepted, More: t.arrivals.missed, LastNew: counted.opened, LastByte: counted.moved,
		LastOther: others.opened, LastPeer: t.lastActive.peer,
		Listeners: y.listeners, Open: y.open, InFlight: y.inFlight, GivenUp: y.givenUp,
		PerSecond: slices.Clone(t.arrivals.perSecond), Patterns: t.probes.patterns(),
	}
}
