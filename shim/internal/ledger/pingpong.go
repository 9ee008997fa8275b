package ledger

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// needsPingPong reports whether Info.PingPong may tell if a request is in flight. A waiting
// request has had a pure ACK by now.
//
// Info.PingPong answers what the rest of tcp_info cannot: when the last request and the last response
// fell into the same jiffy, their ages do not say which came first. The kernel's
// delayed-ACK state does (inet_csk_in_pingpong_mode), but only /proc/net/tcp prints it.
// The table is read at most once a second, and only while a connection needs it.
// A connection of which nothing was read counts as in flight.
//
// The kernel does not change the mode by itself while a connection is ambiguous, so it
// is read once. The mode begins with bytes sent (tcp_event_data_sent), a FIN
// (tcp_fin) or TCP_QUICKACK. The mode ends when the delayed-ACK timer fires
// (tcp_delack_timer_handler), within TCP_DELACK_MAX, 200 ms, of the last bytes received,
// whereas needsPingPong waits for 0.8 s; or when the peer sends bytes again
// (tcp_enter_quickack_mode), which is no new request.
func needsPingPong(s *tcp.Socket) bool {
	isTie := !s.Info.PingPong && Classify(s, Usual{}) == Tie
	return isTie && s.State == tcp.Established && s.Info.LastSent >= maxDelayedACK
}

// setPingPong sets s.Info.PingPong. What was read counts as long as every sample needs it, and the
// connection's byte counters are unchanged.
func (l *Ledger) setPingPong(c *Conn, s *tcp.Socket) {
	isSame := c.Seen == l.sample.Previous && s.Info.Received == c.Info.Received && s.Info.Sent == c.Info.Sent
	isNeeded := needsPingPong(s)
	c.hasPingPong = c.hasPingPong && isNeeded && isSame
	switch {
	case c.hasPingPong:
		s.Info.PingPong = c.Info.PingPong
	case isNeeded:
		l.lacking[s.Ends()] = c
	}
}

// pingPongInterval is how far apart two readings of the table are.
const pingPongInterval = time.Second

// PingPong returns a function that is to be called, before the next sample, with each connection
// of /proc/net/tcp and whether it is in ping-pong mode; nil if no connection needs that now. If
// the table cannot be read, the connections count as in flight, so the hold goes on: the safe
// side.
func (l *Ledger) PingPong(now time.Time) (note func(local, remote netip.AddrPort, inPingPong bool)) {
	if len(l.lacking) == 0 || now.Sub(l.pingPongReadAt) < pingPongInterval {
		return nil
	}
	l.pingPongReadAt = now
	return func(local, remote netip.AddrPort, inPingPong bool) {
		if c := l.lacking[tcp.ConnKey(local, remote)]; c != nil {
			c.hasPingPong = true
			c.Info.PingPong = inPingPong
		}
	}
}
