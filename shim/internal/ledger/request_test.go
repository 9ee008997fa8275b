package ledger

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// String returns the state as the doc comment of [Classify] spells it.
func (r RequestState) String() string { return [...]string{"idle", "in flight", "a tie"}[r] }

var states = map[string]tcp.State{
	"open": tcp.Established, "half": tcp.CloseWait, "closed": tcp.FinWait2, "listens": tcp.Listen, "waits": tcp.TimeWait,
}

// TestClassify: for each line of its doc comment, sockets on both sides of each limit. A pure ACK on
// each connection is usual.
func TestClassify(t *testing.T) {
	source, err := os.ReadFile("request.go")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, cells := range tables.Rows(`
		# the line | state, unread, unsent, retries
		#   | received, sent, segments of both, pure ACKs, ping-pong | ages of sent, received, ACK in ms
		a listener, or TIME_WAIT                                     | listens 1 0 0 |                    |
		a listener, or TIME_WAIT                                     | waits 1 0 0   | 9 9 1 1 1 false    | 0 0 0
		the peer no longer answers                                   | open 0 1 6    |                    |
		the peer no longer answers                                   | open 0 1 6    | 9 9 1 1 1 false    | 1000 0 0
		the peer no longer answers                                   | open 0 1 7    | 9 9 1 1 1 false    | 0 0 0
		unread or unsent bytes                                       | open 0 1 6    | 9 9 1 1 1 false    | 996 5000 0
		unread or unsent bytes                                       | open 0 1 5    | 9 9 1 1 1 false    | 1000 5000 0
		unread or unsent bytes                                       | open 1 0 0    |                    |
		unread or unsent bytes                                       | closed 0 1 0  | 9 9 1 1 1 false    | 0 5000 0
		no tcp_info, nothing received, or closed by the program      | open 0 0 0    |                    |
		no tcp_info, nothing received, or closed by the program      | open 0 0 0    | 0 0 0 0 0 false    | 0 0 0
		no tcp_info, nothing received, or closed by the program      | closed 0 0 0  | 9 0 3 1 1 false    | 0 0 0
		nothing sent, or received later than sent                    | open 0 0 0    | 1 0 1 0 1 false    | 0 5000 0
		nothing sent, or received later than sent                    | half 0 0 0    | 9 9 1 1 1 false    | 4 0 0
		sent later than received, or only one data segment received  | open 0 0 0    | 9 9 3 1 2 false    | 0 4 0
		sent later than received, or only one data segment received  | open 0 0 0    | 9 9 1 1 1 false    | 4 4 4
		both in one jiffy, last ACK later by < 0.8 s                 | open 0 0 0    | 9 9 2 1 2 false    | 800 800 4
		both in one jiffy, < 0.8 s ago                               | open 0 0 0    | 9 9 2 1 2 false    | 0 0 0
		both in one jiffy, < 0.8 s ago                               | open 0 0 0    | 9 9 2 5 0 true     | 796 796 796
		half-closed by the peer, both in one jiffy                   | half 0 0 0    | 9 9 2 5 0 true     | 800 800 800
		both in one jiffy, last ACK >= 0.8 s after it, PingPong      | open 0 0 0    | 9 9 3 1 2 true     | 800 800 0
		both in one jiffy, PingPong, pure ACKs and segments as usual | open 0 0 0    | 9 9 3 1 0 true     | 800 800 800
		both in one jiffy, PingPong, pure ACKs and segments as usual | open 0 0 0    | 9 9 2 4 1 true     | 800 800 800
		both in one jiffy, PingPong, pure ACKs and segments as usual | open 0 0 0    | 9 9 3 3 1 true     | 800 800 800
		both in one jiffy, PingPong, pure ACKs and segments as usual | open 0 0 0    | 9 9 2 3 2 true     | 800 800 800
		both in one jiffy                                            | open 0 0 0    | 9 9 3 1 2 false    | 800 800 0
		both in one jiffy                                            | open 0 0 0    | 9 9 3 2 1 true     | 800 800 800
		both in one jiffy                                            | open 0 0 0    | 9 9 2 4 2 true     | 800 800 800
		both in one jiffy                                            | open 0 0 0    | 9 9 0 0 1 true     | 800 800 800
		both in one jiffy                                            | open 0 0 0    | 9 9 2 3 1 false    | 800 800 800
	`) {
		s := tcp.Socket{HasInfo: cells[2] != ""}
		info := &s.Info
		var state string
		var ages [3]time.Duration
		fmt.Sscan(cells[1], &state, &s.Unread, &s.Unsent, &s.Retries)
		fmt.Sscan(cells[2], &info.Received, &info.Sent, &info.Segments, &info.SentSegments, &info.PureACKs, &info.PingPong)
		fmt.Sscan(cells[3], &ages[0], &ages[1], &ages[2])
		s.State = states[state]
		info.LastSent, info.LastReceived, info.LastAcked = ages[0]*time.Millisecond, ages[1]*time.Millisecond, ages[2]*time.Millisecond
		lines = append(lines, fmt.Sprintf("//\t%-61s %v\n", cells[0], Classify(&s, Usual{PureACKs: 1})))
	}
	table := strings.Join(slices.Compact(lines), "")
	if !strings.Contains(string(source), "//\n"+table+"//\n") {
		t.Errorf("the sockets come to\n%s", table)
	}
}
