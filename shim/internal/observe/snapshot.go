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
	ProcNet  = "/proc/net" // tables and counters; requests in flight cannot be seen
	None     = "none"      // nothing can be read
)

// Snapshot is the result of one sample.
type Snapshot struct {
	Began        time.Time     // when the sample was taken
	PreviousTook time.Duration // how long the sample before this one took

	State   stop.TrafficState // what the sample means for the hold
	Verdict traffic.Verdict
	Traffic traffic.Summary
	Peers   []traffic.Peer // at most Config.TopPeers, most connections first

	Listeners Listeners
	Observer  string // SockDiag, ProcNet or None; "": no TCP listener, so nothing to observe
	Trouble   string // why Observer is not the best observer; "": it is
	Warning   string // Trouble, in the first snapshot that has it

	PathsPresent []string // the paths of Config.WaitGone that exist
}

// Observed reports whether there was traffic to observe and a way to do so.
func (s *Snapshot) Observed() bool { return s.Observer != "" && s.Observer != None }

// Listeners is what the container listens on, and how that was found.
type Listeners struct {
	Method scope.Method
	TCP    scope.Ports
	UDP    scope.Ports // ports whose traffic cannot be observed
	Unix   []string    // paths, as above
}
