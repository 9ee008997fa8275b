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
		return fmt.Sprintf("terminationGracePeriodSeconds is not given, so %d", p.grace), otherwise
	}
	return fmt.Sprintf("terminationGracePeriodSeconds is %d", p.grace), p.graceLine
}

// short returns a time in seconds.
func short(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }

// seconds returns the pod's grace period.
func (p *pod) seconds() time.Duration { return time.Duration(p.grace) * time.Second }

// reportGrace reports conflicts of a lameduck with the pod's grace period, after a preStop hook
// that sleeps. With less, a smaller --grace-period is fine: a sidecar's stop begins later.
func (p *pod) reportGrace(c *container, l *lameduck, sleep time.Duration, less bool) {
	if l == nil || l.unclear || p.patch {
		return
	}
	asks := l.holds() || l.cfg.Schedule != nil || l.cfg.KillAfter > 0 || l.cfg.Linger > 0 || l.cfg.GracePeriod > 0
	if !asks {
		return
	}
	place, line := p.place(l.line)
	if sleep > 0 {
		place += fmt.Sprintf(", of which the preStop sleep takes %s", short(sleep))
	}
	left := p.seconds() - sleep
	if left < time.Second {
		if sleep == 0 {
			c.report(line, graceTooShort, "%s: KILL comes at once, without a hold; give 30 or more", place)
		}
		return // reportSleep reports the rest
	}
	cfg := l.cfg
	cfg.GracePeriod = left
	right, err := shim.NewOutline(cfg)
	told := l.cfg.GracePeriod
	const usual = usualGrace * time.Second
	switch {
	case err != nil && !ofBuild(err) && (l.outline != nil || strings.Contains(err.Error(), "grace")):
		c.report(line, graceTooShort, "%s: %s", place, strings.Replace(err.Error(), ": give", "; give", 1))
	case err != nil || l.outline == nil:
	case told > 0 && told != left && told != p.seconds() && (told > left || !less):
		c.report(l.lineOf("--grace-period"), graceDiffers,
			"lameduck is told a grace period of %s, but %s: %s; give --grace-period=%v",
			short(told), place, consequence(l.outline, right), left.Seconds())
	case told == 0 && l.holds() && left != usual && p.grace != usualGrace && !c.more && !(less && left > usual):
		c.report(l.line, graceDiffers,
			"lameduck assumes a grace period of %d s, but %s: %s; give --grace-period=%v",
			usualGrace, place, consequence(l.outline, right), left.Seconds())
	}
}

// consequence returns the result of a wrong grace period.
func consequence(wrong, right *shim.Outline) string {
	switch {
	case right.MaxHold == wrong.MaxHold:
		return "what it reports of a long stop comes at the wrong time"
	case right.MaxHold < wrong.MaxHold:
		return fmt.Sprintf(
			"the hold may last %s, and KILL comes before the command has time to stop", short(wrong.MaxHold))
	}
	return fmt.Sprintf("the hold ends after %s, and could last %s", short(wrong.MaxHold), short(right.MaxHold))
}
