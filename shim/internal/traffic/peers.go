package traffic

import (
	"cmp"
	"net/netip"
	"sort"
)

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
			open[s.peer]++
		}
	}
	for addr, count := range open {
		list = append(list, Peer{addr, count})
	}
	sort.Slice(list, func(i, k int) bool {
		return cmp.Or(cmp.Compare(list[k].Open, list[i].Open), list[i].Addr.Compare(list[k].Addr)) < 0
	})
	return list[:min(n, len(list))]
}
