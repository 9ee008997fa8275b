package shim

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// What the report makes of what was seen: why a hold was as long as it was, and
// what would be better.

// prolonged is what kept the hold up beyond its floor, or empty.
func (d *drain) prolonged() string {
	t := &d.Traffic
	if d.plan.stop.Gate.Until == Elapsed || d.after(d.end()) <= d.plan.stop.Gate.Floor {
		return ""
	}
	var causes []string
	if d.Ended == stop.Ceiling {
		causes = d.lasted()
	}
	if len(t.Patterns) > 0 && !d.plan.traffic.IgnoreProbes {
		p := t.Patterns[0]
		causes = append(causes, fmt.Sprintf(d.spell("%d bytes from %v every %s: a probe? see --ignore-probes"), p.Received, p.Peer, seconds(p.Period)))
	}
	return strings.Join(causes, ", and ")
}

// lasted is what lasted until the ceiling, if something did: what Until waits for
// the end of, but for patterns.
func (d *drain) lasted() []string {
	t, until, latest := &d.Traffic, d.plan.stop.Gate.Until, ""
	if t.LastPeer.IsValid() {
		latest = fmt.Sprintf(", the latest peer %v", t.LastPeer)
	}
	lastNew, lastByte := t.LastNew, t.LastByte
	if len(t.Patterns) > 0 && !d.plan.traffic.IgnoreProbes {
		lastNew, lastByte = t.LastOther, time.Time{} // whose the last byte was is not known
	}
	switch {
	case len(d.PathsPresent) > 0:
		return []string{quote.Word(fmt.Sprintf("%.200s", d.PathsPresent[0])) + " was there to the end"}
	case d.recent(lastNew):
		return []string{"new connections to the end" + latest}
	case until == stop.Settled:
		return nil
	case t.InFlight > 0:
		return []string{fmt.Sprintf("%d in flight to the end", t.InFlight)}
	case d.recent(lastByte):
		return []string{"bytes moved to the end" + latest}
	case until == stop.Drained && t.Open > 0:
		return []string{fmt.Sprintf("%d open to the end", t.Open)}
	}
	return nil
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
		return fmt.Sprintf(d.spell("the command is a shell that does not pass %v on: exec, or --group"), d.deaf)
	case !d.Observed() || d.Ended == "":
		return ""
	case d.Ended == stop.Elapsed:
		return d.fixed()
	case d.Ended == stop.NoProgress:
		return "connections wait to be accepted and nothing moves: the command hangs"
	case d.Ended == stop.Ceiling && d.recent(d.Traffic.LastOther) && d.steady():
		return "new connections kept their rate to the ceiling: a liveness restart, the last endpoint, or a balancer that never removed us"
	}
	return ""
}

// fixed is about a delay that is the floor alone: what it would have to be.
func (d *drain) fixed() string {
	last := d.Traffic.LastOther
	if !last.After(d.TriggeredAt) {
		return ""
	}
	need := (d.after(last) + 2*time.Second - 1).Truncate(time.Second)
	switch {
	case d.end().Sub(last) < time.Second:
		return fmt.Sprintf(d.spell("new connections came to the end: %s is too short; see --until=quiet"), stop.FormatDuration(d.plan.stop.Gate.Floor))
	case need < d.plan.stop.Gate.Floor:
		but := ""
		if last.Before(d.Traffic.LastNew) {
			but = " but for probes"
		}
		return fmt.Sprintf("last new connection%s at +%s: a fixed delay needs %s", but, seconds(d.after(last)), stop.FormatDuration(need))
	}
	return ""
}

// steady reports whether in the last third of the hold at least half as many
// connections came as in the first.
func (d *drain) steady() bool {
	all := d.Traffic.PerSecond
	third := len(all) / 3
	first, last := sum(all[:third]), sum(all[len(all)-third:])
	return third > 0 && first >= third && 2*last >= first
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}
