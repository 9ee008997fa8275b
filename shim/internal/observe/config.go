package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Config is what to observe, and when.
type Config struct {
	Start   time.Time // the trigger: silence, Floor and Ceiling count from here
	Traffic traffic.Config
	Ports   []uint16 // local TCP ports that count; none: those of the container's listeners

	WholePIDNamespace bool             // every process of the PID namespace is the container's
	Health            *health.Listener // its connections do not count; nil: no health listener
	WaitGone          []string         // paths whose existence each snapshot reports

	Until   stop.Reason   // the condition of an adaptive hold: stop.Settled, Quiet or Drained; "": not adaptive
	Floor   time.Duration // a sample is taken when the floor has passed
	Ceiling time.Duration // two samples are taken just before; the hold ends then in any case

	DetectServerGone bool          // report that the server has ended: a hook is not its parent
	Rescan           time.Duration // find the listeners anew this often; 0: only at the start
	TopPeers         int           // how many peers a snapshot lists

	Wake func() // called after each snapshot is sent
}

// filtered reports whether some connections to our ports do not count. The kernel's
// counters include such connections.
func (c *Config) filtered() bool {
	t := &c.Traffic
	return c.Health != nil || t.IgnoreProbes || len(t.IgnorePorts)+len(t.IgnorePeers) > 0
}
