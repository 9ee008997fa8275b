package tcp

import "testing"

// TestDiscountFIN: the FIN counts as a received byte in the states after the peer's FIN,
// and never makes a counter negative.
func TestDiscountFIN(t *testing.T) {
	for name, c := range map[string]struct {
		socket   Socket
		unread   uint32
		received uint64
	}{
		"established":        {Socket{State: Established, Unread: 3, Info: Info{Received: 9}}, 3, 9},
		"closed by us":       {Socket{State: FinWait2, Unread: 3, Info: Info{Received: 9}}, 3, 9},
		"closed by the peer": {Socket{State: CloseWait, Unread: 3, Info: Info{Received: 9}}, 2, 8},
		"closed by both":     {Socket{State: LastAck, Info: Info{Received: 9}}, 0, 8},
		"closed at one time": {Socket{State: Closing, Info: Info{Received: 9}}, 0, 8},
		"only a FIN":         {Socket{State: CloseWait, Unread: 1, Info: Info{Received: 1}}, 0, 0},
		"no tcp_info":        {Socket{State: CloseWait}, 0, 0},
		"gone, FINs of both": {Socket{State: Close, Info: Info{Received: 9, Sent: 5, Acked: 6}}, 0, 8},
		"gone, reset":        {Socket{State: Close, Info: Info{Received: 9, Sent: 5, Acked: 5}}, 0, 9},
		"gone, bytes resent": {Socket{State: Close, Info: Info{Received: 9, Sent: 8, Acked: 6}}, 0, 9},
		"a listener's queue": {Socket{State: Listen, Unread: 3}, 3, 0},
	} {
		s := c.socket
		s.DiscountFIN()
		if s.Unread != c.unread || s.Info.Received != c.received {
			t.Errorf("%s: unread %d, received %d; want %d, %d", name, s.Unread, s.Info.Received, c.unread, c.received)
		}
	}
}
