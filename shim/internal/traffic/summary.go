package traffic

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// Summary has the figures of a hold for the report. Times are zero without such an event.
type Summary struct {
	Accepted  int       // connections since the trigger
	More      bool      // connections may be missing from Accepted
	LastNew   time.Time // the last new connection that counts
	LastByte  time.Time // the last byte on a connection that counts
	LastOther time.Time // the last new connection that is no possible health probe
	Open      int       // in the latest complete sample, like InFlight
	InFlight  int       // requests that hold
	PerSecond []int     // new connections in each second from the trigger, for an hour at most
	Patterns  []Pattern // possible health probes, left out or not, the most frequent first

	InUse   int     // connections on which bytes moved less than QuietFor ago, left out probes aside
	Cause   Cause   // what the condition waited for last
	LeftOut LeftOut // what did not count

	ClosedIdle int // connections of Tracker.NoteClosed
	CameBack   int // of their peers, how many have connected since
}

// LeftOut counts what does not count as traffic. Its names in JSON are those of the report.
type LeftOut struct {
	Bare     int `json:"no_bytes"`  // new connections on which no byte was received
	Probes   int `json:"probes"`    // requests of possible health probes, in the latest sample
	HalfOpen int `json:"half_open"` // connections in SYN_RECV, in the sample with the most
	Gone     int `json:"gone"`      // open connections whose peer no longer answers, in the latest sample
	GivenUp  int `json:"given_up"`  // requests silent for MaxSilence, in the latest sample
}

// Summary returns the figures up to the latest sample.
func (t *Tracker) Summary() Summary {
	t.arrivals.lengthen(int((t.now - trigger) / time.Second))
	r := t.summary
	r.PerSecond = slices.Clone(t.arrivals.perSecond)
	r.Patterns = t.patterns()
	r.ClosedIdle = t.closings.closed
	r.CameBack = t.closings.cameBack
	for _, p := range r.Patterns {
		if p.LeftOut {
			r.LeftOut.Probes += p.Count
		}
	}
	return r
}

// Peer is an address with open connections.
type Peer struct {
	Addr netip.Addr `json:"peer"`
	Open int        `json:"open"`
}

// Peers returns at most n peers, in descending order of the connections open in the
// latest sample.
func (t *Tracker) Peers(n int) (list []Peer) {
	open := map[netip.Addr]int{}
	for _, c := range t.conns {
		open[c.peer]++
	}
	for addr, count := range open {
		list = append(list, Peer{addr, count})
	}
	slices.SortFunc(list, func(a, b Peer) int { return cmp.Or(cmp.Compare(b.Open, a.Open), a.Addr.Compare(b.Addr)) })
	return list[:min(n, len(list))]
}
