package observe

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestPingPong: an entry counts for a connection whose bytes are unchanged since the table
// was read. The table is read for new entries, at most once a second.
func TestPingPong(t *testing.T) {
	at := trigger
	reads := 0
	table := ""
	cache := pingpongCache{entries: map[uint64]pingpongEntry{}}
	cache.readTable = func(visit func(local, remote netip.AddrPort, pingpong bool)) error {
		reads++
		if table == "fails" {
			return errors.New("no such file")
		}
		visit(serverEnd, clientEnd, table == "yes")
		visit(clientEnd, serverEnd, true) // the other end
		return nil
	}
	for i, cells := range tables.Rows(`
		# after | bytes received | the table | shown | times that the table was read
		250ms | 10       | yes   | false | 0
		# the first sample found the entry missing
		250ms | 10       | yes   | true  | 1
		250ms | 10       | yes   | true  | 1
		250ms | 20       | no    | false | 1
		250ms | 20       | no    | false | 1
		1s    | 20       | no    | false | 2
		250ms | 30       | yes   | false | 2
		# bytes since the table was read
		1s    | 40       | yes   | false | 3
		1s    | 40       | yes   | true  | 4
		# unambiguous, so that the entry is dropped
		250ms | 0        | yes   | false | 4
		250ms | 40       | yes   | false | 4
		1s    | 40       | fails | false | 5
		1s    | 40       | fails | false | 6
	`) {
		at = at.Add(testutil.Must(time.ParseDuration(cells[0])))
		table = cells[2]
		s := tcp.Socket{State: tcp.Established, Local: serverEnd, Remote: clientEnd, HasInfo: true}
		const age = 2 * time.Second
		s.Info = tcp.Info{LastSent: age, LastReceived: age, LastAcked: age, Sent: 5, Segments: 2}
		fmt.Sscan(cells[1], &s.Info.Received)
		cache.beginSample(at)
		cache.apply(&s)
		if got := fmt.Sprint(s.Info.PingPong, " ", reads); got != cells[3]+" "+cells[4] {
			t.Errorf("step %d: %s, want %s", i, got, cells[3:])
		}
	}
	for range 2 { // samples without the connection
		cache.beginSample(at)
	}
	if len(cache.entries) > 0 {
		t.Errorf("entries left: %v", cache.entries)
	}
}
