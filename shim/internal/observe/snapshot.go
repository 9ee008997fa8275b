package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Values of Snapshot.Observer.
const (
	SockDiag = "sock_diag" // sock_diag(7), the best observer
	ProcNet  = "/proc/net" // tables and counters; requests in flight are unknown
	None     = "none"      // no source can be read
)

// Snapshot is the result of one sample.
type Snapshot struct {
	Began        time.Time     // when the sample was taken
	PreviousTook time.Duration // the duration of the previous sample

	State    stop.TrafficState // the consequence for the hold
	Requests stop.Requests     // the consequence for the search for a lull
	Verdict  traffic.Verdict
	Traffic  traffic.Summary
	Peers    []traffic.Peer // at most Config.TopPeers, by number of connections

	Listeners Listeners
	Observer  string // SockDiag, ProcNet or None; "": no TCP listener
	Trouble   string // why Observer is not SockDiag
	Warning   string // Trouble, in one snapshot only

	PathsPresent []string // the existing paths of Config.WaitGone
}

// Listeners are the ports and paths on which the container listens.
type Listeners struct {
	Method scope.Method // how the listeners were found
	TCP    scope.Ports
	Late   scope.Ports // the ports of TCP that the server opened since the trigger
	UDP    scope.Ports // traffic of these ports cannot be observed
	Unix   []string    // likewise, paths and abstract names
	Unseen []string    // likewise, words: see scope.Scope.Unseen
}
