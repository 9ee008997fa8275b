package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// place returns the pod's grace period in words, and the line.
func (p *pod) place(otherwise int) (text string, line int) {
	if p.graceLine == 0 {
		return fmt.Sprintf("%s is not given, so %d", p.graceField, p.grace), otherwise
	}
	return fmt.Sprintf("%s is %d", p.graceField, p.grace), p.graceLine
}

// short returns a time in seconds.
func short(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }

// seconds returns the pod's grace period.
func (p *pod) seconds() time.Duration { return time.Duration(p.grace) * time.Second }

// reportGrace reports conflicts of a lameduck with the pod's grace period, after a preStop hook
// that sleeps. With less, a smaller --grace-period is fine: a sidecar's stop begins later.
func (p *pod) reportGrace(c *container, d *instance, sleep time.Duration, less bool) {
	told := d.gave("grace-period") // the image may say the rest
	if p.patch || !d.starts || !d.sequence && d.cfg.Linger == 0 && !told {
		return
	}
	place, line := p.place(d.line)
	if sleep > 0 {
		place += fmt.Sprintf(", of which the preStop sleep takes %s", short(sleep))
	}
	left := p.seconds() - sleep
	if left < time.Second {
		if sleep == 0 {
			c.report(line, graceTooShort, "%s: KILL comes at once, without a hold; give 30 or more", place)
		}
		return // sleep reports the rest
	}
	cfg := d.cfg
	cfg.GracePeriod = left
	if err := cfg.Validate(); err != nil {
		c.report(line, graceTooShort, "%s: %s", place, strings.Replace(err.Error(), ": give", "; give", 1))
		return
	}
	if d.cfg.Holds() || told {
		p.reportDifference(c, d, cfg, place, less)
	}
}

// reportDifference reports a --grace-period, or an assumed grace period, that differs from the
// pod's. cfg has the right one.
func (p *pod) reportDifference(c *container, d *instance, cfg shim.Config, place string, less bool) {
	told := d.cfg.GracePeriod
	left := cfg.GracePeriod
	const usual = usualGrace * time.Second
	switch {
	case told > 0 && told != left && told != p.seconds() && (told > left || !less):
		c.report(d.given["grace-period"].line, graceDiffers, "lameduck is told a grace period of %s, but %s: %s; give --grace-period=%v", short(told), place, d.consequence(cfg), left.Seconds())
	case told == 0 && left != usual && p.grace != usualGrace && !c.moreVariables && !(less && left > usual):
		c.report(d.line, graceDiffers, "lameduck assumes a grace period of %d s, but %s: %s; give --grace-period=%v", usualGrace, place, d.consequence(cfg), left.Seconds())
	}
}

// consequence returns the result of a wrong grace period. cfg has the right one.
func (d *instance) consequence(cfg shim.Config) string {
	right, err := explain(cfg)
	switch {
	case err != nil || right.longest == d.longest:
		return "what it reports of a long stop comes at the wrong time"
	case right.longest < d.longest:
		return fmt.Sprintf("the hold may last %s, and KILL comes before the command has time to stop", short(d.longest))
	}
	return fmt.Sprintf("the hold ends after %s, and could last %s", short(d.longest), short(right.longest))
}

// reportSleep reports faults of a preStop hook that sleeps.
func (p *pod) reportSleep(c *container, h *hook) {
	switch d := c.entry; {
	case h.sleep == 0:
	case h.sleep >= p.seconds() && !p.patch:
		place, _ := p.place(0)
		c.report(h.line, preStopTooLong, "preStop sleeps %s, and %s: KILL comes 2 s after the stop signal; sleep less, or give more", short(h.sleep), place)
	case d != nil && d.starts && d.cfg.Holds():
		c.report(h.line, preStopAddsUp, "preStop sleeps %s, and then lameduck holds, up to %s: they add up; leave the preStop out", short(h.sleep), short(d.longest))
	}
}

// reportKnative reports a hold after the preStop hook that Knative gives each container: the
// hook asks the pod's queue-proxy, which answers when no request has come for 30 s
// (userLifecycle and drainSleepDuration in knative/serving).
func (p *pod) reportKnative(c *container) {
	if d := c.entry; p.knative && d != nil && d.starts && d.cfg.Holds() {
		c.report(d.line, preStopAddsUp, "Knative's own preStop hook lets the server serve until no request has come for 30 s, and then lameduck holds, up to %s: they add up; leave the hold out", short(d.longest))
	}
}

// reportHook reports a lameduck hold without effect, or with too much.
func (p *pod) reportHook(c *container, h *hook) {
	entry := c.entry
	if entry != nil && entry.starts && entry.cfg.Holds() {
		switch {
		case p.shared:
			c.report(h.instance.line, holdTwice, "lameduck hold comes on top of the hold of the entrypoint, which it does not find, since that is not PID 1 here: they add up; leave one of them out")
		case c.program.behind != "" && entry.complete:
			c.report(h.instance.line, holdTwice, "lameduck hold comes on top of the hold of the entrypoint, which it does not find behind %s: they add up; leave one of them out", c.program.behind)
		default:
			c.report(h.instance.line, holdTwice, "lameduck hold returns at once, since the entrypoint is a lameduck that holds by itself; leave one of them out")
		}
	}
	if p.shared && h.instance.starts && len(h.instance.cfg.CountPorts) == 0 {
		c.report(h.instance.line, sharedPID, "lameduck hold mistakes the listeners of all visible processes for its own, here also those of other containers; give --count-port, or do without shareProcessNamespace and hostPID")
	}
}
