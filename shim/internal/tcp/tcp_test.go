package tcp

import (
	"fmt"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// TestDiscountFIN: the FIN counts as a received byte in the states after the peer's FIN,
// and never makes a counter negative.
func TestDiscountFIN(t *testing.T) {
	states := map[string]State{"ESTABLISHED": Established, "FIN_WAIT2": FinWait2, "CLOSE_WAIT": CloseWait,
		"LAST_ACK": LastAck, "CLOSING": Closing, "CLOSE": Close, "LISTEN": Listen}
	for _, cells := range tables.Rows(`
		# name | state, bytes unread, received, sent and acknowledged | unread and received without the FIN
		established        | ESTABLISHED 3 9 0 0 | 3 9
		closed by us       | FIN_WAIT2 3 9 0 0   | 3 9
		closed by the peer | CLOSE_WAIT 3 9 0 0  | 2 8
		closed by both     | LAST_ACK 0 9 0 0    | 0 8
		closed at one time | CLOSING 0 9 0 0     | 0 8
		only a FIN         | CLOSE_WAIT 1 1 0 0  | 0 0
		no tcp_info        | CLOSE_WAIT 0 0 0 0  | 0 0
		gone, FINs of both | CLOSE 0 9 5 6       | 0 8
		gone, reset        | CLOSE 0 9 5 5       | 0 9
		gone, bytes resent | CLOSE 0 9 8 6       | 0 9
		a listener's queue | LISTEN 3 0 0 0      | 3 0
	`) {
		var s Socket
		var state string
		fmt.Sscan(cells[1], &state, &s.Unread, &s.Info.Received, &s.Info.Sent, &s.Info.Acked)
		s.State = states[state]
		s.DiscountFIN()
		if got := fmt.Sprint(s.Unread, s.Info.Received); got != cells[2] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[2])
		}
	}
}
