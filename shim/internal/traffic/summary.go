package traffic

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"time"
)

// Summary has the figures of a hold for the report. Times are zero without such an event.
type Summary struct {
	Accepted  int       // connections since the trigger
	More      bool      // connections may be missing from Accepted
	LastNew   time.Time // the last new connection that counts
	LastByte  time.Time // the last byte on a connection that counts
	LastOther time.Time // the last new connection outside of patterns
	Open      int       // in the latest complete sample, like InFlight
	InFlight  int       // requests that hold
	PerSecond []int     // new connections in each second from the trigger, for an hour at most
	Patterns  []Pattern // possible health probes, left out or not, the most frequent first

	Kept    Kept    // what clients that never let go still use; zero until a lull is sought
	Cause   Cause   // what the condition waited for last
	LeftOut LeftOut // what did not count
}

// Summary returns the figures up to the latest sample.
func (t *Tracker) Summary() Summary {
	t.arrivals.lengthen(int(t.now.sinceTrigger() / time.Second))
	counted := t.counted()
	others := t.activity(t.lastSample.activity, (*rhythm).regular)
	y := &t.lastSample
	return Summary{
		Accepted: t.arrivals.accepted, More: t.arrivals.missed, LastNew: t.time(counted.opened), LastByte: t.time(counted.moved),
		LastOther: t.time(others.opened),
		Open:      y.open, InFlight: y.inFlight,
		PerSecond: slices.Clone(t.arrivals.perSecond), Patterns: t.patterns(),
		Kept: t.causes.kept, Cause: t.causes.last,
		LeftOut: LeftOut{
			HalfOpen: t.causes.halfOpen, Bare: t.causes.bare + y.bare, Gone: y.gone,
			GivenUp: y.givenUp, GivenUpPeer: y.oldestGiven.peer,
		},
	}
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
	for i := range t.conns.slots {
		if s := &t.conns.slots[i]; s.used {
			open[s.socket.peer]++
		}
	}
	for addr, count := range open {
		list = append(list, Peer{addr, count})
	}
	sort.Sort(byOpen(list))
	return list[:min(n, len(list))]
}

// byOpen sorts peers, the peers with the most open connections first. sort.Sort, which the
// program has anyway, keeps the binary smaller than slices.SortFunc or sort.Slice would.
type byOpen []Peer

func (p byOpen) Len() int      { return len(p) }
func (p byOpen) Swap(i, k int) { p[i], p[k] = p[k], p[i] }
func (p byOpen) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(p[k].Open, p[i].Open), p[i].Addr.Compare(p[k].Addr)) < 0
}
