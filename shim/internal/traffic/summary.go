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
}

// LeftOut counts what does not count as traffic.
type LeftOut struct {
	HalfOpen int // connections in SYN_RECV, in the sample with the most
	Bare     int // new connections on which no byte was received
	Gone     int // open connections whose peer no longer answers, in the latest sample
	GivenUp  int // requests silent for MaxSilence, in the latest sample
}

// Summary returns the figures up to the latest sample.
func (t *Tracker) Summary() Summary {
	t.arrivals.lengthen(int(t.now.sinceTrigger() / time.Second))
	y := &t.latest
	counted := t.withoutProbes(y.counted)
	return Summary{
		Accepted: t.arrivals.accepted, More: t.arrivals.missed,
		LastNew: t.time(counted.opened), LastByte: t.time(counted.moved), LastOther: t.time(t.lastOther()),
		Open: y.open, InFlight: y.inFlight,
		PerSecond: slices.Clone(t.arrivals.perSecond), Patterns: t.patterns(),
		InUse: y.inUse, Cause: t.cause.last,
		LeftOut: LeftOut{HalfOpen: t.halfOpen, Bare: t.bare + y.bare, Gone: y.gone, GivenUp: y.givenUp},
	}
}

// lastOther returns when the last new connection came that is no possible health probe.
func (t *Tracker) lastOther() moment {
	a := t.latest.activity
	a.add(t.closed)
	for _, found := range t.probes {
		if before, regular := found.leftOut(&Config{Probes: IgnoreProbes}, t.now); regular {
			a.add(before)
		} else {
			a.add(found.activity)
		}
	}
	return a.opened
}

// Peer is an address with open connections.
type Peer struct {
	Addr netip.Addr
	Open int
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
