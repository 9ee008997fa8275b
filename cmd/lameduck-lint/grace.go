package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// seconds returns a time in seconds, with the unit.
func seconds(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }

// graceText returns the grace period in words, with what a preStop sleep takes of it.
func (c *container) graceText() string {
	text := "terminationGracePeriodSeconds is "
	if c.pod.Grace.line == 0 {
		text = "terminationGracePeriodSeconds is missing, which means "
	}
	text += fmt.Sprint(c.pod.grace.Seconds())
	if c.sleep > 0 && !c.noneLeft {
		text += ", of which the preStop sleep takes " + seconds(c.sleep)
	}
	return text
}

// graceLine returns the line of a pod that gives a grace period.
func graceLine(d time.Duration) string {
	return fmt.Sprintf("terminationGracePeriodSeconds: %v", d.Seconds())
}

func graceTooShort(c *container, report reporter) {
	switch {
	case !c.noneLeft:
	case c.sleep > 0:
		report(c.sleepLine,
			"preStop sleeps %s, and %s: KILL comes 2 s after the stop signal; write %s",
			seconds(c.sleep), c.graceText(), graceLine(c.sleep+30*time.Second))
	case c.entry.Holds() || c.hold.Holds():
		report(c.pod.Grace.line, "%s: KILL comes at once, without a hold; write %s", c.graceText(), graceLine(30*time.Second))
	}
	for _, l := range []lameduck{c.entry, c.hold} {
		var misfit *shim.FlagError
		if errors.As(l.misfit, &misfit) {
			report(cmp.Or(c.pod.Grace.line, l.line), "%s: %v; %s", c.graceText(), misfit.Err, misfit.Remedy)
		}
	}
}

// graceDiffers: with a hook of unknown length, or in a sidecar, whose stop begins later, less
// than the pod's grace period is fine.
func graceDiffers(c *container, report reporter) {
	busy := c.Lifecycle.PreStop != nil && (c.sleep == 0 || len(c.hook) > 2)
	for _, l := range []*lameduck{&c.entry, &c.hold} {
		told, right := l.outline, l.right
		if told == nil || right == nil || told.Grace == right.Grace || told.Grace == c.pod.grace {
			continue
		}
		how := "is told"
		fits := told.Grace < right.Grace && (c.RestartPolicy == "Always" || busy && l == &c.entry)
		if told.GraceAssumed {
			how = "assumes"
			fits = fits || !l.Holds() || c.more
		}
		consequence := fmt.Sprintf("the hold ends after %s, and could last %s",
			seconds(told.MaxHold), seconds(right.MaxHold))
		switch {
		case right.MaxHold == told.MaxHold:
			consequence = "what it reports of a long stop comes at the wrong time"
		case right.MaxHold < told.MaxHold:
			consequence = "the hold may last " + seconds(told.MaxHold) +
				", and KILL comes before the command has time to stop"
		}
		remedy := fmt.Sprintf("give --grace-period=%v", right.Grace.Seconds())
		if c.pod.Grace.line == 0 && told.Grace > right.Grace && !told.GraceAssumed {
			remedy = "write " + graceLine(told.Grace+c.sleep)
		}
		if !fits {
			report(l.lineOf("grace-period"), "lameduck %s a grace period of %s, but %s: %s; %s",
				how, seconds(told.Grace), c.graceText(), consequence, remedy)
		}
	}
}

func preStopAddsUp(c *container, report reporter) {
	switch {
	case c.sleep == 0 || c.noneLeft:
	case c.hold.Holds():
		report(c.sleepLine,
			"the hook sleeps %s beside lameduck hold, which knows when traffic has stopped: they add up; leave the "+
				"sleep out, or give --delay=%v instead", seconds(c.sleep), c.sleep.Seconds())
	case c.entry.outline != nil && c.entry.outline.MaxHold > 0:
		report(c.sleepLine, "preStop sleeps %s, and then lameduck holds, up to %s: they add up; leave the preStop out",
			seconds(c.sleep), seconds(c.entry.outline.MaxHold))
	}
}
