package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// queues are the accept queues of the listeners, and whether the program serves them.
type queues struct {
	accepted map[uint16]bool // the ports of which the program has accepted a connection
	filled   []Cause         // of the current sample, one for each queue that is not empty
	wanted   int             // connections in these queues that have sent something or are not shown
	peer     netip.Addr      // of a connection in a queue
	activeAt moment          // when connections last waited, or may have

	progressAt moment // when the program last made progress, or had no need to
}

// add adds a listener.
func (q *queues) add(s *tcp.Socket) {
	q.wanted += int(s.Unread)
	if s.Unread > 0 {
		q.filled = append(q.filled, Cause{Kind: AcceptQueue, Port: s.Local.Port(), Connections: int(s.Unread)})
	}
}

// note adds a connection.
func (q *queues) note(s *tcp.Socket, accepted bool) {
	if accepted {
		q.accepted[s.Local.Port()] = true
		return
	}
	q.peer = s.Remote.Addr()
	if s.Unread == 0 {
		q.wanted--
	}
}

// longest returns the longest queue in which connections wait for the program, without any
// if no connection waits. A connection to a port that the program never accepts from does not
// wait, unless the connection has sent something or is not shown.
func (q *queues) longest(now moment) (longest Cause) {
	for _, w := range q.filled {
		if w.Connections > longest.Connections && (q.accepted[w.Port] || q.wanted > 0) {
			longest = w
			longest.Peer = q.peer
			q.activeAt = now
		}
	}
	return longest
}

// stuckAfter is how long connections may wait to be accepted, or requests to be read,
// without any progress of the program.
const stuckAfter = 10 * time.Second
