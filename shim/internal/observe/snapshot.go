package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Config says how to take samples, and when.
type Config struct {
	Start   time.Time // the trigger: silence and the times of Gate count from here
	Traffic traffic.Config
	Letgo   letgo.Config
	Ports   []uint16 // local TCP ports that count; empty: the ports of the container's listeners

	WholePIDNamespace bool           // every process of the PID namespace is the container's
	Own               *health.Conns  // connections of lameduck's own, which do not count; nil: none yet
	WaitGone          []string       // each snapshot reports the existing paths
	WaitURL           *check.Request // and the state of the URL until it answers 200, or refuses; nil: none

	// A sample is taken when the floor has passed, when a search for a lull may begin, and twice
	// just before the hold ends in any case.
	Gate stop.Gate

	DetectServerGone bool // report the end of the server: a hook is not the parent
	EveryPort        bool // every listener of the network namespace counts, and samples have the sockets of all ports

	Wake func() // called after each snapshot is sent
}

// Snapshot is a sample of the traffic, and how it was taken.
type Snapshot struct {
	report.Observation
	Ledger       *ledger.Sample // that was judged; valid until Continue
	Fault        any            // of lameduck's own, after which there is no sample
	Began        time.Time      // when the sample was taken
	PreviousTook time.Duration  // the duration of the previous sample

	State    stop.TrafficState // the consequence for the hold
	Requests stop.Requests     // the consequence for the search for a lull

	Scope        scope.Scope // the listeners of the container
	Trouble      string      // why Observer is not the best one
	CloseTrouble string      // why a kept connection could not be closed
}
