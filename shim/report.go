package shim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// The report of a stop, a line at a time: one at the trigger, since KILL may
// come at any time; one at the end; and one between them where the command
// still runs when the grace period is about to end.

// announcement is the line at the trigger.
func announcement(p *plan, r stop.Record) string {
	line := fmt.Sprintf("%v: holding %s, then %v; a second %v skips", r.Trigger, p.stop.Gate.String(), r.Step, r.Trigger)
	if p.caveat != "" {
		line += "; " + p.caveat
	}
	return line
}

// conclusion is the line at the end.
func conclusion(p *plan, r stop.Record, s *sight) string {
	used := fmt.Sprintf("%s of the %s used", seconds(r.ExitedAt.Sub(r.TriggeredAt)), graceText(p))
	parts := []string{held(r, r.ExitedAt), sent(r), ending(r), used}
	if p.stop.Gate.Until != Elapsed {
		parts = slices.Insert(parts, 1, seen(p, r, s)...)
	}
	return strings.Join(parts, "; ")
}

// seen is what was seen of the traffic in the hold, and how.
func seen(p *plan, r stop.Record, s *sight) (parts []string) {
	if s.observer == "" { // there was nothing to see, or no time
		return nil
	}
	t := &s.traffic
	accepted := fmt.Sprintf("%d new connections", t.Accepted)
	if t.More {
		accepted = "at least " + accepted
	}
	if t.LastNew.After(r.TriggeredAt) {
		accepted += ", the last at +" + seconds(t.LastNew.Sub(r.TriggeredAt))
	}
	open := fmt.Sprintf("%d open at the end, %d of them in flight", t.Open, t.InFlight)
	if t.GivenUp > 0 {
		open += fmt.Sprintf(", %d more given up after %s of silence", t.GivenUp, length(p.traffic.MaxSilence))
	}
	parts = []string{accepted, open, fmt.Sprintf("seen by %s, %s", s.observer, s.scope)}
	for _, probe := range t.Patterns {
		if !p.traffic.IgnoreProbes {
			parts = append(parts, fmt.Sprintf("%d bytes from %v every %s: a probe? see --ignore-probes", probe.Received, probe.Peer, seconds(probe.Period)))
		}
	}
	return parts
}

// overtime is the line one second before the end of the grace period.
func overtime(p *plan, r stop.Record) string {
	at := r.TriggeredAt.Add(p.stop.Grace - stop.Margin)
	still := fmt.Sprintf("the command still runs at +%s of the %s", seconds(at.Sub(r.TriggeredAt)), graceText(p))
	return strings.Join([]string{held(r, at), sent(r), still}, "; ")
}

// noHold is for a command that ended after a signal that starts no hold,
// though a hold is configured: perhaps an image's STOPSIGNAL.
func noHold(r stop.Record) string {
	return fmt.Sprintf("no hold took place: %v was passed on, and %s; if %v is how this container is stopped, give --stop-signal=%v",
		r.Passed, exitText(r), r.Passed, r.Passed)
}

// held is how long the hold was, or has been by now.
func held(r stop.Record, now time.Time) string {
	if r.Ended == "" {
		return fmt.Sprintf("%v: held %s so far", r.Trigger, seconds(now.Sub(r.TriggeredAt)))
	}
	return fmt.Sprintf("%v: held %s (%s)", r.Trigger, seconds(r.EndedAt.Sub(r.TriggeredAt)), r.Ended)
}

func sent(r stop.Record) string {
	if len(r.Sent) == 0 {
		return "nothing sent"
	}
	var steps []string
	for _, s := range r.Sent {
		steps = append(steps, fmt.Sprintf("%v at +%s", s.Signal, seconds(s.At.Sub(r.TriggeredAt))))
	}
	return "sent " + strings.Join(steps, ", ")
}

func ending(r stop.Record) string {
	return fmt.Sprintf("%s at +%s", exitText(r), seconds(r.ExitedAt.Sub(r.TriggeredAt)))
}

// exitText is how the command ended; a KILL of our own is said to be ours.
func exitText(r stop.Record) string {
	if r.Exit.Signal == 0 {
		return fmt.Sprintf("the command exited %d", r.Exit.Code)
	}
	whose := ""
	if n := len(r.Sent); r.Exit.Signal == sig.KILL && n > 0 && r.Sent[n-1].Signal == sig.KILL {
		whose = ", which lameduck sent"
	}
	return fmt.Sprintf("the command was killed by %v (%d)%s", r.Exit.Signal, 128+int(r.Exit.Signal), whose)
}

func graceText(p *plan) string {
	if p.assumed {
		return "assumed " + length(p.stop.Grace) + " grace period"
	}
	return length(p.stop.Grace) + " grace period"
}

// seconds is a time that was measured: "2.3 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// length is a time that was given: "2 s", "0.25 s".
func length(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }
