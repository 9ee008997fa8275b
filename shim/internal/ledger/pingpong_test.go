package ledger

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// TestPingPong: what was read counts for a connection whose bytes are unchanged since then. The
// table is read for others, at most once a second.
func TestPingPong(t *testing.T) {
	const second = time.Second
	serverEnd, clientEnd := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("10.0.0.2:4000")
	at := time.Unix(1000, 0)
	l := New(Config{Start: at, LostAfter: second})
	reads := 0
	for i, cells := range tables.Rows(`
		# after | bytes received | the table | shown | times that the table was read
		250ms | 10       | yes   | false | 0
		# the first sample found that nothing was read
		250ms | 10       | yes   | true  | 1
		250ms | 10       | yes   | true  | 1
		250ms | 20       | no    | false | 1
		250ms | 20       | no    | false | 1
		1s    | 20       | no    | false | 2
		250ms | 30       | yes   | false | 2
		# bytes since the table was read
		1s    | 40       | yes   | false | 3
		1s    | 40       | yes   | true  | 4
		# unambiguous, so that what was read is dropped
		250ms | 0        | yes   | false | 4
		250ms | 40       | yes   | false | 4
		1s    | 40       | fails | false | 5
		1s    | 40       | yes   | true  | 6
		# a sample without the connection
		250ms | -        | yes   | false | 6
		250ms | 40       | yes   | false | 6
	`) {
		after, _ := time.ParseDuration(cells[0])
		at = at.Add(after)
		if note := l.PingPong(at); note != nil {
			reads++
			if cells[2] != "fails" {
				note(serverEnd, clientEnd, cells[2] == "yes")
				note(clientEnd, serverEnd, true) // the other end
			}
		}
		s := tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, HasInfo: true}
		const age = 2 * second
		s.Info = tcp.Info{LastSent: age, LastReceived: age, LastAcked: age, Sent: 5, Segments: 2}
		fmt.Sscan(cells[1], &s.Info.Received)
		l.Begin(at)
		if cells[1] != "-" {
			l.Observe(&s, Clients)
		}
		l.End(Rest{})
		if got := fmt.Sprint(s.Info.PingPong, " ", reads); got != cells[3]+" "+cells[4] {
			t.Errorf("step %d: %s, want %s", i, got, cells[3:])
		}
	}
}
