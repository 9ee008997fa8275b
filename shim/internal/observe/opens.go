package observe

import (
	"slices"
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
	recent  []uint64        // PassiveOpens at the latest samples, without the opens of health checks
	toSelf  int             // connections to ourselves since the latest sample with counters
}

// lateSamples is how many samples later than the kernel lameduck may count its own
// connection.
const lateSamples = 3

// begin sets the counters of the trigger. countsLate reports whether lameduck has
// connections of its own.
func (p *opens) begin(initial procfs.Counters, err error, countsLate bool) {
	p.comparable = p.comparable && err == nil
	p.initial, p.latest = initial, initial
	p.recent = []uint64{initial.PassiveOpens}
	if countsLate {
		p.recent = slices.Repeat(p.recent, 1+lateSamples)
	}
}

// check adds to rest the connections that the kernel has accepted since the previous sample.
// If destroy events report connections, a surplus is of connections shorter than a sample
// that will still be reported. Otherwise a surplus is activity; where the counter includes
// other connections, or a flood hides ours, their number is unknown.
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
	p.latest = counters

	before := slices.Min(p.recent)
	p.recent = append(p.recent[1:], counters.PassiveOpens)
	opened := int64(slices.Min(p.recent) - before)
	toSelf := p.toSelf
	p.toSelf = 0
	switch {
	case e.reader != nil:
		if p.comparable {
			rest.Opened = max(int(opened)-toSelf, 0)
		}
	case opened <= 0:
	case p.comparable && counters.ActiveOpens == p.initial.ActiveOpens:
		rest.Accepted = int(counters.PassiveOpens - p.initial.PassiveOpens)
	default:
		rest.MissedAt = now
	}
}
