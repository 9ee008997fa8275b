package observe

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// pingpongCache answers what tcp_info cannot: when the last request and the last response
// fell into the same jiffy, their ages do not say which came first. The kernel's
// delayed-ACK state does (inet_csk_in_pingpong_mode), but only /proc/net/tcp prints it.
// The table is read at most once a second, and only while a connection needs it.
// A connection without an entry counts as in flight.
//
// The kernel does not change the mode by itself while a connection is ambiguous, so an
// entry is read once. The mode begins with bytes sent (tcp_event_data_sent), a FIN
// (tcp_fin) or TCP_QUICKACK. The mode ends when the delayed-ACK timer fires
// (tcp_delack_timer_handler), within TCP_DELACK_MAX, 200 ms, of the last bytes received,
// whereas traffic.NeedsPingPong waits for 0.8 s; or when the peer sends bytes again
// (tcp_enter_quickack_mode), which is no new request.
type pingpongCache struct {
	readTable func(visit func(local, remote netip.AddrPort, pingpong bool)) error
	entries   map[uint64]pingpongEntry // by traffic.ConnKey
	missing   bool                     // a connection has no valid entry
	readAt    time.Time
	sample    int // entries of earlier samples are dropped
}

// pingpongEntry is valid while the byte counters of the connection are unchanged.
type pingpongEntry struct {
	received, sent uint64
	sample         int  // the latest with the connection
	known          bool // pingpong was read
	pingpong       bool // false if not known
}

// pingpongInterval is how far apart two readings of the table are.
const pingpongInterval = time.Second

// beginSample drops the entries that the previous sample did not need, and reads the table
// if that sample lacked an entry. On error the entries stay unknown. Unknown counts as in
// flight, so the hold goes on: the safe side.
func (c *pingpongCache) beginSample(now time.Time) {
	for key, e := range c.entries {
		if e.sample != c.sample {
			delete(c.entries, key)
		}
	}
	c.sample++
	if !c.missing || now.Sub(c.readAt) < pingpongInterval {
		return
	}
	c.missing = false
	c.readAt = now
	c.readTable(func(local, remote netip.AddrPort, pingpong bool) {
		key := traffic.ConnKey(local, remote)
		e, wanted := c.entries[key]
		if wanted && !e.known {
			e.known = true
			e.pingpong = pingpong
			c.entries[key] = e
		}
	})
}

// apply sets s.Info.PingPong from the cache. An entry is valid only while the connection's
// byte counters are unchanged since the table was read.
func (c *pingpongCache) apply(s *tcp.Socket) {
	if !traffic.NeedsPingPong(s) {
		return
	}
	key := traffic.ConnKey(s.Local, s.Remote)
	e := c.entries[key]
	if e.received != s.Info.Received || e.sent != s.Info.Sent {
		e = pingpongEntry{received: s.Info.Received, sent: s.Info.Sent}
	}
	e.sample = c.sample
	c.entries[key] = e
	c.missing = c.missing || !e.known
	s.Info.PingPong = e.pingpong
}
