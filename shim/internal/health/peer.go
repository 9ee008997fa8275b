package health

import (
	"cmp"
	"net/netip"
)

// peer is the origin of a client.
type peer struct {
	network netip.Addr // the IPv4 address, or the /64 of the IPv6 address
	addr    netip.Addr
}

// peerOf returns the peer at an address. The owner of one IPv6 address usually
// has the whole /64 to choose from; within a /64, addresses still tell neighbors
// apart.
func peerOf(addr netip.Addr) peer {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return peer{network: addr, addr: addr}
	}
	network, _ := addr.Prefix(64)
	return peer{network: network.Addr(), addr: addr}
}

// candidate is a client that may be reset to make room.
type candidate struct {
	sameNetwork int // clients of the same network
	sameAddr    int // clients of the same address
	client      *client
}

// before reports whether c is to be reset rather than d.
func (c candidate) before(d candidate) bool {
	return cmp.Or(
		cmp.Compare(d.sameNetwork, c.sameNetwork),
		cmp.Compare(d.sameAddr, c.sameAddr),
		cmp.Compare(c.client.rank(), d.client.rank()),
		c.client.lastByte.Compare(d.client.lastByte),
	) < 0
}

// victim returns the client to reset to make room, other than keep; nil if no other
// client exists.
func victim(clients []client, keep *client) *client {
	var first candidate
	networks := countByKey(clients, func(c *client) netip.Addr { return c.from.network })
	addrs := countByKey(clients, func(c *client) netip.Addr { return c.from.addr })
	for i := range clients {
		c := candidate{networks[i], addrs[i], &clients[i]}
		if c.client.phase == free || c.client == keep {
			continue
		}
		if first.client == nil || c.before(first) {
			first = c
		}
	}
	return first.client
}

// countByKey returns for each client how many clients have the same key. In a flood
// the keys are few, and each key takes two passes.
func countByKey(clients []client, key func(*client) netip.Addr) (counts [clientSlots]int) {
	for i := range clients {
		if clients[i].phase == free || counts[i] > 0 {
			continue
		}
		k := key(&clients[i])
		same := func(j int) bool { return clients[j].phase != free && key(&clients[j]) == k }
		n := 0
		for j := i; j < len(clients); j++ {
			if same(j) {
				n++
			}
		}
		for j := i; j < len(clients); j++ {
			if same(j) {
				counts[j] = n
			}
		}
	}
	return counts
}
