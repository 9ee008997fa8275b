package shim

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// The report of a stop, a line at a time: one at the trigger, since KILL may
// come at any time; one at the end; and one between them where the command
// still runs when the grace period is about to end.

// drain is all there is to report of a stop, at some moment of it.
type drain struct {
	plan *plan
	stop.Record
	observe.Snapshot                   // at the last look before the signal was sent
	late             *observe.Snapshot // at the last look since; nil: there was none
	now              time.Time
	deaf             sig.Signal // what the command, a shell, did not pass on; 0: nothing
}

// after is a time since the trigger.
func (d *drain) after(at time.Time) time.Duration { return at.Sub(d.TriggeredAt) }

// spell spells the flags in text as they are to be given.
func (d *drain) spell(text string) string { return d.plan.spelling.In(text) }

// trigger is what began it.
func (d *drain) trigger() string {
	if d.Trigger == 0 {
		return "hold"
	}
	return d.Trigger.String()
}

// announcement is the line at the trigger.
func (d *drain) announcement() string {
	gate := &d.plan.stop.Gate
	line := fmt.Sprintf("%s: holding %s", d.trigger(), d.spell(gate.String()))
	switch {
	case d.plan.hook:
		line += "; TERM skips"
	case !gate.Holds():
		line = fmt.Sprintf("%s: no hold; now %v", d.trigger(), d.Steps)
	default:
		line += fmt.Sprintf(", then %v; a second %v skips", d.Steps, d.Trigger)
	}
	if after := d.plan.stop.KillAfter; after > 0 {
		line += fmt.Sprintf("; KILL %s after the first signal", stop.FormatDuration(after))
	}
	if d.plan.caveat != "" {
		line += "; " + d.plan.caveat
	}
	return line
}

// conclusion is the line at the end.
func (d *drain) conclusion() string {
	parts := append([]string{d.held()}, d.seen()...)
	if !d.plan.hook {
		parts = append(parts, d.sent(), fmt.Sprintf("%s at +%s", d.exit(), seconds(d.after(d.ExitedAt))))
	}
	return d.hinted(append(parts, fmt.Sprintf("%s of the %s used", seconds(d.after(d.now)), d.grace())))
}

// hinted is a line of these parts, and of the suggestion if there is one.
func (d *drain) hinted(parts []string) string {
	if hint := d.suggestion(); hint != "" {
		parts = append(parts, hint)
	}
	return strings.Join(parts, "; ")
}

// progress is what stands when the signal was sent, for the termination log.
func (d *drain) progress() string {
	return strings.Join(append(append([]string{d.held()}, d.seen()...), d.sent()), "; ")
}

// overtime is the line one second before the end of the grace period.
func (d *drain) overtime() string {
	busy := ""
	switch {
	case d.late != nil && d.late.Observed():
		busy = fmt.Sprintf(", %d in flight", d.late.Traffic.InFlight+d.late.Traffic.GivenUp)
	case d.Ended == "" && d.Observed():
		busy = fmt.Sprintf(", %d in flight", d.Traffic.InFlight+d.Traffic.GivenUp)
	}
	at := d.after(d.now)
	if !d.ExitedAt.IsZero() {
		return d.hinted([]string{d.held(), d.sent(), fmt.Sprintf("%s at +%s", d.exit(), seconds(d.after(d.ExitedAt))), fmt.Sprintf("what it has left still runs at +%s of the %s", seconds(at), d.grace())})
	}
	if d.plan.hook {
		return d.hinted([]string{d.held(), fmt.Sprintf("%s of the %s left", seconds(d.plan.stop.Grace-at), d.grace()) + busy})
	}
	return d.hinted([]string{d.held(), d.sent(), fmt.Sprintf("the command still runs at +%s of the %s", seconds(at), d.grace()) + busy})
}

// noHold is for a command that ended after a signal that starts no hold,
// though a hold is configured: perhaps an image's STOPSIGNAL.
func (d *drain) noHold() string {
	return fmt.Sprintf(d.spell("no hold took place: %v was passed on, and %s; if %v is how this container is stopped, give --stop-signal=%v"),
		d.Forwarded, d.exit(), d.Forwarded, d.Forwarded)
}

// held is how long the hold was, or has been by now.
func (d *drain) held() string {
	if !d.plan.stop.Gate.Holds() {
		return d.trigger() + ": no hold"
	}
	if d.Ended == "" {
		return fmt.Sprintf("%s: held %s so far", d.trigger(), seconds(d.after(d.now)))
	}
	return fmt.Sprintf("%s: held %s (%s)", d.trigger(), seconds(d.after(d.EndedAt)), d.Ended)
}

// seen is what was seen of the traffic in the hold, and how.
func (d *drain) seen() (parts []string) {
	if len(d.Listeners.UDP) > 0 {
		parts = append(parts, fmt.Sprintf("UDP, on %s, cannot be seen", numbers(d.Listeners.UDP)))
	}
	if d.Observer == observe.None {
		parts = append(parts, "the traffic could not be seen")
	}
	if !d.Observed() {
		return parts
	}
	parts = append(parts, d.came(), d.left(), fmt.Sprintf("seen by %s, %s", d.Observer, d.Listeners.Method))
	if why := d.prolonged(); why != "" {
		parts = append(parts, why)
	}
	return parts
}

// came is what came after the trigger: connections, and bytes. Some may have been
// too short to be counted, and yet noticed.
func (d *drain) came() string {
	t := &d.Traffic
	text := fmt.Sprintf("%d new connections", t.Accepted)
	if t.Accepted == 1 {
		text = "1 new connection"
	}
	if t.More {
		text = "at least " + text
	}
	if t.LastNew.After(d.TriggeredAt) {
		last := "the last"
		if len(t.Patterns) > 0 && d.plan.traffic.IgnoreProbes {
			last += " but for probes"
		}
		if t.Accepted == 0 {
			text, last = "new connections, too short to be counted", "the last"
		} else {
			text += " " + sparkline(t.PerSecond)
		}
		text += fmt.Sprintf(", %s at +%s", last, seconds(d.after(t.LastNew)))
	}
	if t.LastByte.After(d.TriggeredAt) {
		text += ", the last byte at +" + seconds(d.after(t.LastByte))
	}
	return text
}

// left is what was open when the hold ended: what the signal may cut.
func (d *drain) left() string {
	t := &d.Traffic
	text := fmt.Sprintf("%d open at the end", t.Open)
	busy, givenUp := d.busy()
	switch {
	case d.Observer == observe.ProcNet && t.Open > 0 && busy == 0:
		text += ", in flight unknown"
	case t.Open > 0 || busy > 0:
		text += fmt.Sprintf(", %d in flight", busy)
	}
	if givenUp > 0 {
		text += fmt.Sprintf(", %d given up after %s of silence", givenUp, stop.FormatDuration(d.plan.traffic.MaxSilence))
	}
	return text
}

// busy is how many requests were in flight, and how many more had been silent for
// so long that they did not hold. A delay that is all waits for none, and gives
// none up.
func (d *drain) busy() (inFlight, givenUp int) {
	if d.plan.stop.Gate.Until == Elapsed {
		return d.Traffic.InFlight + d.Traffic.GivenUp, 0
	}
	return d.Traffic.InFlight, d.Traffic.GivenUp
}

func (d *drain) sent() string {
	if len(d.Sent) == 0 {
		return "nothing sent"
	}
	var steps []string
	for _, s := range d.Sent {
		steps = append(steps, fmt.Sprintf("%v at +%s", s.Signal, seconds(d.after(s.At))))
	}
	return "sent " + strings.Join(steps, ", ")
}

// exit is how the command ended; a KILL of our own is said to be ours.
func (d *drain) exit() string {
	if d.Exit.Signal == 0 {
		return fmt.Sprintf("the command exited %d", d.Exit.Code)
	}
	whose := ""
	if n := len(d.Sent); d.Exit.Signal == sig.KILL && n > 0 && d.Sent[n-1].Signal == sig.KILL {
		whose = "lameduck's "
	}
	return fmt.Sprintf("the command was killed by %s%v (%d)", whose, d.Exit.Signal, 128+int(d.Exit.Signal))
}

func (d *drain) grace() string {
	if d.plan.assumed {
		return "assumed " + stop.FormatDuration(d.plan.stop.Grace) + " grace period"
	}
	return stop.FormatDuration(d.plan.stop.Grace) + " grace period"
}

// seconds is a time that was measured: "2.3 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// several is how many ports are named: media servers have thousands.
const several = 8

// numbers is ports in words: "53, 8125", or the first ones "and 9992 more".
func numbers(ports []uint16) string {
	more := ""
	if n := len(ports) - several; n > 0 {
		ports, more = ports[:several], fmt.Sprintf(" and %d more", n)
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]") + more
}

// columns is how wide a sparkline may be.
const columns = 30

// sparkline draws how many came in each second, or in each of some seconds where
// there are many.
func sparkline(perSecond []int) string {
	wide := (len(perSecond) + columns - 1) / columns
	var sums []int
	most := 1
	for i, n := range perSecond {
		if i%wide == 0 {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += n
		most = max(most, sums[len(sums)-1])
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range sums {
		b.WriteRune(bars[(n*(len(bars)-1)+most-1)/most])
	}
	return b.String()
}
