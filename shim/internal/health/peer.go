package health

import (
	"cmp"
	"net/netip"
)

// peer is where a client comes from.
type peer struct {
	network netip.Addr // the IPv4 address, or the IPv6 address's /64
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

// standing is what decides which client is reset to make room.
type standing struct {
	network, addr int // clients of the same network, and of the same address
	client        *client
}

// before reports whether s is to be reset rather than t.
func (s standing) before(t standing) bool {
	return cmp.Or(
		cmp.Compare(t.network, s.network),
		cmp.Compare(t.addr, s.addr),
		cmp.Compare(s.client.worth(), t.client.worth()),
		s.client.moved.Compare(t.client.moved),
	) < 0
}

// victim returns the client to reset to make room, but never keep; nil if there is
// no other client.
func victim(clients []client, keep *client) *client {
	var first standing
	networks := tally(clients, func(c *client) netip.Addr { return c.from.network })
	addrs := tally(clients, func(c *client) netip.Addr { return c.from.addr })
	for i := range clients {
		c := &clients[i]
		if c.phase == free || c == keep {
			continue
		}
		if s := (standing{networks[i], addrs[i], c}); first.client == nil || s.before(first) {
			first = s
		}
	}
	return first.client
}

// tally returns for each client how many clients have the same key. In a flood there
// are few keys, and each takes two passes.
func tally(clients []client, key func(*client) netip.Addr) (counts [clientSlots]int) {
	for i := range clients {
		if clients[i].phase == free || counts[i] > 0 {
			continue
		}
		k, n := key(&clients[i]), 0
		same := func(j int) bool { return clients[j].phase != free && key(&clients[j]) == k }
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
