package observe

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// opens compares the kernel's counters of TCP in the network namespace with samples and
// events: some connections are shorter than the interval of samples.
type opens struct {
	comparable bool // only connections that count are counted: no neighbor listens, and no connection is left out

	initial procfs.Counters // at the trigger
	latest  procfs.Counters // at the latest sample
	toSelf  int             // connections to ourselves since the latest sample with counters
}

// check adds to rest the connections that the kernel has accepted since the previous sample.
// If destroy events report connections, a surplus is of connections shorter than a sample
// that will still be reported. Otherwise a surplus is activity; where the counter includes
// other connections, their number is unknown.
func (p *opens) check(now time.Time, counters procfs.Counters, err error, e *events, rest *ledger.Rest) {
	if err != nil {
		if e.reader == nil {
			rest.MissedAt = now
		}
		return
	}
	// For a source that shows no bytes a segment is activity: gVisor leaves the queues of
	// /proc/net/tcp at 0, and on Linux most requests are read and answered between two samples.
	rest.Segments = counters.InSegs != p.latest.InSegs
	rest.TurnedAway = counters.ListenOverflows > p.latest.ListenOverflows
	opened := int(counters.PassiveOpens - p.latest.PassiveOpens)
	toSelf := p.toSelf
	p.latest, p.toSelf = counters, 0
	switch {
	case e.reader != nil:
		if p.comparable {
			rest.Opened = max(opened-toSelf, 0)
		}
	case opened <= 0:
	case p.comparable && counters.ActiveOpens == p.initial.ActiveOpens:
		rest.Accepted = int(counters.PassiveOpens - p.initial.PassiveOpens)
	default:
		rest.MissedAt = now
	}
}
