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
	place, line := p.place(l.line)
	if sleep > 0 {
		place += fmt.Sprintf(", of which the preStop sleep takes %s", short(sleep))
	}
	left := p.seconds() - sleep
	if left < time.Second {
		if sleep == 0 && l.holds() {
			c.report(line, graceTooShort, "%s: KILL comes at once, without a hold; give 30 or more", place)
		}
		return // reportSleep reports the rest
	}
	cfg := l.cfg
	cfg.GracePeriod = left
	right, err := shim.NewOutline(cfg)
	switch {
	case err == nil && l.outline != nil:
		p.reportDifference(c, l, right, place, less)
	case err != nil && !ofBuild(err) && (l.outline != nil || strings.Contains(err.Error(), "grace")):
		c.report(line, graceTooShort, "%s: %s", place, strings.Replace(err.Error(), ": give", "; give", 1))
	}
}

// reportDifference reports a --grace-period, or an assumed grace period, that is not the right
// one.
func (p *pod) reportDifference(c *container, l *lameduck, right *shim.Outline, place string, less bool) {
	told, left := l.outline.Grace, right.Grace
	line, how := l.lineOf("--grace-period"), "is told"
	if l.outline.GraceAssumed {
		line, how = l.line, "assumes"
		if !l.holds() || c.more || p.grace == usualGrace {
			return
		}
	}
	if told == left || told == p.seconds() || less && told < left {
		return
	}
	c.report(line, graceDiffers, "lameduck %s a grace period of %s, but %s: %s; give --grace-period=%v",
		how, short(told), place, consequence(l.outline, right), left.Seconds())
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
