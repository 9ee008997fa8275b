package shim

import (
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// What the report makes of what was seen: why a hold was as long as it was, and
// what would be better.

// prolonged is what kept the hold up beyond its floor, or empty.
func (d *drain) prolonged() string {
	t := &d.traffic
	if d.plan.stop.Gate.Until == Elapsed || d.after(d.end()) <= d.plan.stop.Gate.Floor {
		return ""
	}
	if len(t.Patterns) > 0 && !d.plan.traffic.IgnoreProbes {
		p := t.Patterns[0]
		return fmt.Sprintf("%d bytes from %v every %s: a probe? see --ignore-probes", p.Received, p.Peer, seconds(p.Period))
	}
	switch {
	case d.Ended != stop.Ceiling:
		return ""
	case len(d.left) > 0:
		return d.left[0] + " was there to the end"
	case t.InFlight > 0:
		return fmt.Sprintf("%d in flight to the end", t.InFlight)
	case t.LastPeer.IsValid() && d.recent(t.LastNew):
		return fmt.Sprintf("new connections to the end, the last from %v", t.LastPeer)
	case t.LastPeer.IsValid() && d.recent(t.LastByte):
		return fmt.Sprintf("bytes moved to the end, the last to or from %v", t.LastPeer)
	case t.Open > 0:
		return fmt.Sprintf("%d open to the end", t.Open)
	}
	return ""
}

// end is when the hold ended, or now.
func (d *drain) end() time.Time {
	if d.Ended == "" {
		return d.now
	}
	return d.EndedAt
}

// recent reports whether at is not a silence before the end.
func (d *drain) recent(at time.Time) bool { return d.end().Sub(at) < d.plan.traffic.QuietFor }

// suggestion is what would be better, where the data says so, or empty.
func (d *drain) suggestion() string {
	switch {
	case d.deaf != 0:
		return fmt.Sprintf("the command is a shell that does not pass %v on: exec, or --group", d.deaf)
	case d.observer == "" || d.observer == blind || d.Ended == "":
		return ""
	case d.Ended == stop.Elapsed:
		return d.fixed()
	case d.Ended != stop.Ceiling:
		return ""
	case len(d.traffic.Patterns) > 0 && !d.plan.traffic.IgnoreProbes && !d.recent(d.traffic.LastOther):
		return "to wait for all but probes: --ignore-probes"
	case d.steady():
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, or a balancer that never removed us"
	}
	return ""
}

// fixed is about a delay that is the floor alone: what it would have to be.
func (d *drain) fixed() string {
	last := d.traffic.LastOther
	if !last.After(d.TriggeredAt) {
		return ""
	}
	need := (d.after(last) + 2*time.Second - 1).Truncate(time.Second)
	switch {
	case d.end().Sub(last) < time.Second:
		return fmt.Sprintf("new connections came to the end: %s is too short; see --until=quiet", length(d.plan.stop.Gate.Floor))
	case need < d.plan.stop.Gate.Floor:
		return fmt.Sprintf("last new connection at +%s: a fixed delay needs %s", seconds(d.after(last)), length(need))
	}
	return ""
}

// steady reports whether at least as many connections came in the last third of
// the hold as make half of those in the first.
func (d *drain) steady() bool {
	all := d.traffic.PerSecond
	third := len(all) / 3
	first, last := sum(all[:third]), sum(all[len(all)-third:])
	return third > 0 && first >= third && 2*last >= first && d.recent(d.traffic.LastNew)
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}
