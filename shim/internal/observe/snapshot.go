package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
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

// Snapshot is a sample of the traffic, and how it was taken.
type Snapshot struct {
	traffic.Sample
	Began        time.Time     // when the sample was taken
	PreviousTook time.Duration // the duration of the previous sample

	State    stop.TrafficState // the consequence for the hold
	Requests stop.Requests     // the consequence for the search for a lull
	Cost     cost.Result       // with Config.Watch

	Scope     scope.Scope // the listeners of the container
	LatePorts scope.Ports // of Scope, those that the server opened since the trigger
	Observer  string      // SockDiag, ProcNet or None; "": no TCP listener
	Trouble   string      // why Observer is not SockDiag

	Asked        letgo.Figures // the kept connections that were closed
	CloseTrouble string        // why one could not be closed

	PathsPresent []string // the existing paths of Config.WaitGone
}
