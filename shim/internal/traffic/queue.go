package traffic

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// addQueue adds the accept queue of a listener to the sample.
func (t *Tracker) addQueue(s *tcp.Socket) {
	y := &t.current
	n := int(s.Unread)
	y.wanted += n
	if n > 0 {
		y.filled = append(y.filled, Cause{Kind: AcceptQueue, Port: s.Local.Port(), Connections: n})
	}
}

// longestQueue returns the longest queue in which connections wait for the program, without any
// if no connection waits. A connection to a port that the program never accepts from does not
// wait, unless the connection has sent something or is not shown.
func (t *Tracker) longestQueue() (longest Cause) {
	y := &t.current
	for _, w := range y.filled {
		if w.Connections > longest.Connections && (t.accepted[w.Port] || y.wanted > 0) {
			longest = w
			longest.Peer = t.queued
			t.queuedAt = t.now
		}
	}
	return longest
}

// stuckAfter is how long connections may wait to be accepted, or requests to be read,
// without any progress of the program.
const stuckAfter = 10 * time.Second
