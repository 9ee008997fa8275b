package traffic

import (
	"cmp"
	"net/netip"
	"slices"
)

// Peer is who has connections open.
type Peer struct {
	Addr netip.Addr
	Open int
}

// Peers are those with the most connections open at the last look, no more than
// most of them.
func (j *Judge) Peers(most int) (list []Peer) {
	open := map[netip.Addr]int{}
	for i := range j.conns.slots {
		if s := &j.conns.slots[i]; s.used {
			open[s.peer]++
		}
	}
	for addr, n := range open {
		list = append(list, Peer{addr, n})
	}
	slices.SortFunc(list, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(b.Open, a.Open), a.Addr.Compare(b.Addr))
	})
	return list[:min(most, len(list))]
}
