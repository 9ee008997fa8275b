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

// standingOf counts the clients that share c's network and address.
func standingOf(c *client, clients []client) standing {
	s := standing{client: c}
	for i := range clients {
		other := &clients[i]
		if other.phase == free || other.from.network != c.from.network {
			continue
		}
		s.network++
		if other.from.addr == c.from.addr {
			s.addr++
		}
	}
	return s
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
	for i := range clients {
		c := &clients[i]
		if c.phase == free || c == keep {
			continue
		}
		if s := standingOf(c, clients); first.client == nil || s.before(first) {
			first = s
		}
	}
	return first.client
}
