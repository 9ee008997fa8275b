package traffic

import (
	"net/netip"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// queues are the accept queues of the listeners, and whether the program serves them.
type queues struct {
	accepted   map[uint16]bool // the ports of which the program has accepted a connection
	filled     []queue         // not empty in the current sample
	unaccepted int             // connections that the current sample shows in a queue, with nothing to read
	peer       netip.Addr      // of a connection in a queue
	activeAt   moment          // when connections waited last

	madeProgress bool   // since the previous complete sample
	progressAt   moment // when the program last made progress, or had no need to
	waiting      bool   // a client waited for the program in the latest complete sample
}

// queue is the accept queue of a listener.
type queue struct {
	port   uint16
	length int
}

// begin begins a sample.
func (q *queues) begin() {
	q.filled = q.filled[:0]
	q.unaccepted = 0
}

// add adds a listener.
func (q *queues) add(s *tcp.Socket) {
	if s.Unread > 0 {
		q.filled = append(q.filled, queue{s.Local.Port(), int(s.Unread)})
	}
}

// note adds a connection.
func (q *queues) note(s *tcp.Socket, accepted bool) {
	switch {
	case !accepted:
		q.peer = s.Remote.Addr()
		if s.Unread == 0 {
			q.unaccepted++
		}
	case !q.accepted[s.Local.Port()]:
		q.accepted[s.Local.Port()] = true
	}
}

// longest returns the longest queue in which connections wait for the program, of length 0 if
// no connection waits. A connection to a port that the program never accepts from does not
// wait, unless the connection has sent something or is not shown.
func (q *queues) longest(now moment) (longest queue) {
	total := 0
	for _, w := range q.filled {
		total += w.length
	}
	for _, w := range q.filled {
		if w.length > longest.length && (q.accepted[w.port] || total > q.unaccepted) {
			longest = w
			q.activeAt = now
		}
	}
	return longest
}

// stuckAfter is how long connections may wait to be accepted, or requests to be read,
// without any progress of the program.
const stuckAfter = 10 * time.Second

// endProgress ends a sample. What clients do is no progress.
func (q *queues) endProgress(now moment, waiting, unknown bool) {
	if q.madeProgress || unknown || !waiting || !q.waiting {
		q.progressAt = now
	}
	q.waiting = waiting
	q.madeProgress = false
}
