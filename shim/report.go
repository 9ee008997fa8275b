package shim

import (
	"fmt"
	"strings"
	"time"

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
	sight        // at the last look before the signal was sent
	late  *sight // at the last look since; nil: there was none
	now   time.Time
	deaf  sig.Signal // what the command, a shell, did not pass on; 0: nothing
}

// after is a time since the trigger.
func (d *drain) after(at time.Time) time.Duration { return at.Sub(d.TriggeredAt) }

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
	line := fmt.Sprintf("%s: holding %s", d.trigger(), gate.String())
	switch {
	case d.plan.hook:
		line += "; TERM skips"
	case !gate.Holds():
		line = fmt.Sprintf("%s: no hold; now %v", d.trigger(), d.Steps)
	default:
		line += fmt.Sprintf(", then %v; a second %v skips", d.Steps, d.Trigger)
	}
	if after := d.plan.stop.KillAfter; after > 0 {
		line += fmt.Sprintf("; KILL %s after the first signal", length(after))
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
	parts = append(parts, fmt.Sprintf("%s of the %s used", seconds(d.after(d.now)), d.grace()))
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
	still := fmt.Sprintf("the command still runs at +%s of the %s", seconds(d.after(d.now)), d.grace())
	switch {
	case d.late != nil && d.late.observer != "":
		still += fmt.Sprintf(", %d in flight", d.late.traffic.InFlight)
	case d.Ended == "" && d.observer != "":
		still += fmt.Sprintf(", %d in flight", d.traffic.InFlight)
	}
	parts := []string{d.held(), d.sent(), still}
	if hint := d.suggestion(); hint != "" {
		parts = append(parts, hint)
	}
	return strings.Join(parts, "; ")
}

// noHold is for a command that ended after a signal that starts no hold,
// though a hold is configured: perhaps an image's STOPSIGNAL.
func (d *drain) noHold() string {
	return fmt.Sprintf("no hold took place: %v was passed on, and %s; if %v is how this container is stopped, give --stop-signal=%v",
		d.Passed, d.exit(), d.Passed, d.Passed)
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
	if len(d.datagram) > 0 {
		parts = append(parts, fmt.Sprintf("UDP, on %v, is not seen", numbers(d.datagram)))
	}
	if d.observer == "" || d.observer == blind {
		return parts
	}
	parts = append(parts, d.came())
	open := fmt.Sprintf("%d open at the end, %d of them in flight", d.traffic.Open, d.traffic.InFlight)
	if n := d.traffic.GivenUp; n > 0 {
		open += fmt.Sprintf(", %d more given up after %s of silence", n, length(d.plan.traffic.MaxSilence))
	}
	parts = append(parts, open, fmt.Sprintf("seen by %s, %s", d.observer, d.scope))
	if why := d.prolonged(); why != "" {
		parts = append(parts, why)
	}
	return parts
}

// came is what came after the trigger: connections, and bytes.
func (d *drain) came() string {
	t := &d.traffic
	text := fmt.Sprintf("%d new connections", t.Accepted)
	if t.Accepted == 1 {
		text = "1 new connection"
	}
	if t.More {
		text = "at least " + text
	}
	if t.LastNew.After(d.TriggeredAt) {
		text += fmt.Sprintf(" %s, the last at +%s", sparkline(t.PerSecond), seconds(d.after(t.LastNew)))
	}
	if t.LastByte.After(d.TriggeredAt) {
		text += ", the last byte at +" + seconds(d.after(t.LastByte))
	}
	return text
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
		whose = ", which lameduck sent"
	}
	return fmt.Sprintf("the command was killed by %v (%d)%s", d.Exit.Signal, 128+int(d.Exit.Signal), whose)
}

func (d *drain) grace() string {
	if d.plan.assumed {
		return "assumed " + length(d.plan.stop.Grace) + " grace period"
	}
	return length(d.plan.stop.Grace) + " grace period"
}

// seconds is a time that was measured: "2.3 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// length is a time that was given: "2 s", "0.25 s".
func length(d time.Duration) string {
	return fmt.Sprintf("%v s", d.Round(10*time.Millisecond).Seconds())
}

// numbers is ports in words: "53, 8125".
func numbers(ports []uint16) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
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
