package observe

import (
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// opens compares the kernel's counters of TCP in the network namespace with samples and
// events: some connections are shorter than the interval of samples.
type opens struct {
	soleListener bool // every listener of the namespace is the container's
	filtered     bool // some connections do not count, whoever the peer is
	acceptsLate  bool // there is a health listener, which counts a connection later than the kernel does

	initial            procfs.Counters // at the trigger
	known              bool            // initial could be read
	passiveOpens       int64           // at the latest sample, without the opens of health checks
	recentPassiveOpens [3]int64        // at the latest samples: the health listener accepts later than the kernel counts, so the lowest is used
	selfAccepted       int             // connections to ourselves at the latest sample
	segments           uint64          // InSegs at the latest sample

	unexplained [3]int // opens of the latest samples that neither samples nor events have shown, the oldest first
	arrived     int    // the tracker's connections at the latest sample
}

// begin sets the counters of the trigger.
func (p *opens) begin(initial procfs.Counters, err error) {
	p.initial = initial
	p.known = err == nil
	p.passiveOpens = int64(initial.PassiveOpens)
	p.segments = initial.InSegs
	for i := range p.recentPassiveOpens {
		p.recentPassiveOpens[i] = p.passiveOpens
	}
}

// checkPassiveOpens compares the namespace's PassiveOpens counter with what was seen,
// where destroy events report connections: a surplus is of connections shorter than a
// sample that will still be reported. Events may be late, so rest.Opened includes the
// unexplained opens of the two samples before. Connections of other containers may be
// counted too, in which case only events count.
func (p *opens) checkPassiveOpens(counters procfs.Counters, err error, selfAccepted int, rest *traffic.Rest) {
	copy(p.unexplained[:], p.unexplained[1:])
	newest := &p.unexplained[len(p.unexplained)-1]
	*newest = 0
	if err == nil {
		opened := int64(counters.PassiveOpens) - p.passiveOpens - int64(selfAccepted-p.selfAccepted)
		*newest = int(max(opened, 0))
		p.passiveOpens = int64(counters.PassiveOpens)
		p.selfAccepted = selfAccepted
	}
	if !p.soleListener || p.filtered {
		p.unexplained = [3]int{}
	}
	for _, n := range p.unexplained {
		rest.Opened += n
	}
}

// explain takes the connections that the tracker has found since the previous call from the
// unexplained opens, the newest first; arrived counts connections since the trigger. A
// sample may show a connection that the counter, read before, did not include. The open
// counted later would stay unexplained as long as connections come, if later connections
// explained the oldest open first. So every open is explained after two more samples.
func (p *opens) explain(arrived int) {
	found := arrived - p.arrived
	p.arrived = arrived
	for i := range slices.Backward(p.unexplained[:]) {
		n := min(p.unexplained[i], found)
		p.unexplained[i] -= n
		found -= n
	}
}

// countUnreported does the same without destroy events: a surplus counts as activity.
// Where the counter includes other connections, or a flood hides ours, their number is
// unknown.
func (p *opens) countUnreported(now time.Time, counters procfs.Counters, err error, flooded bool, rest *traffic.Rest) {
	if err != nil {
		rest.MissedAt = now
		return
	}
	passiveOpens := int64(counters.PassiveOpens)
	certain := passiveOpens
	if p.acceptsLate {
		certain = min(passiveOpens, slices.Min(p.recentPassiveOpens[:]))
	}
	exact := p.known && p.soleListener && !p.filtered && !flooded && counters.ActiveOpens == p.initial.ActiveOpens
	switch {
	case certain <= p.passiveOpens:
	case exact:
		rest.Accepted = int(counters.PassiveOpens - p.initial.PassiveOpens)
	default:
		rest.MissedAt = now
	}
	p.passiveOpens = certain
	copy(p.recentPassiveOpens[:], p.recentPassiveOpens[1:])
	p.recentPassiveOpens[2] = passiveOpens
}

// checkSegments reports whether segments arrived since the latest sample. For a source that
// shows no bytes a segment is activity: gVisor leaves the queues of /proc/net/tcp at 0, and
// on Linux most requests are read and answered between two samples.
func (p *opens) checkSegments(counters procfs.Counters, err error) bool {
	if err != nil {
		return false
	}
	arrived := counters.InSegs != p.segments
	p.segments = counters.InSegs
	return arrived
}
