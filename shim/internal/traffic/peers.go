package traffic

import (
	"cmp"
	"net/netip"
	"sort"
)

// Peer is who has connections open.
type Peer struct {
	Addr netip.Addr
	Open int
}

// Peers are those with the most connections open at the last look, no more than
// most of them.
func (j *Tracker) Peers(most int) (list []Peer) {
	open := map[netip.Addr]int{}
	for i := range j.conns.slots {
		if s := &j.conns.slots[i]; s.used {
			open[s.peer]++
		}
	}
	for addr, n := range open {
		list = append(list, Peer{addr, n})
	}
	sort.Slice(list, func(i, k int) bool {
		return cmp.Or(cmp.Compare(list[k].Open, list[i].Open), list[i].Addr.Compare(list[k].Addr)) < 0
	})
	return list[:min(most, len(list))]
}
