package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Config says how to take samples, and when.
type Config struct {
	Start   time.Time // the trigger: silence and the times of Gate count from here
	Traffic traffic.Config
	Ports   []uint16 // local TCP ports that count; empty: the ports of the container's listeners

	WholePIDNamespace bool             // every process of the PID namespace is the container's
	Health            *health.Listener // connections of the health listener do not count; nil: no listener
	WaitGone          []string         // each snapshot reports the existing paths

	// A sample is taken when the floor has passed, when a search for a lull may begin, and twice
	// just before the hold ends in any case.
	Gate stop.Gate

	DetectServerGone bool // report the end of the server: a hook is not the parent
	// Follow every listener of the network namespace, and count what the end of each costs:
	// Snapshot.Cost. Nothing ends the sampling.
	Watch bool

	Wake func() // called after each snapshot is sent
}
