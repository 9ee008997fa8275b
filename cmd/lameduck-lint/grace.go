package main

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// graceText returns the grace period in words, with what a preStop sleep takes of it.
func (s *stop) graceText() string {
	text := "terminationGracePeriodSeconds is "
	if s.pod.Grace.line == 0 {
		text = "terminationGracePeriodSeconds is missing, which means "
	}
	text += fmt.Sprint(s.grace.Seconds())
	if s.sleep > 0 && !s.noneLeft {
		text += shim.InWords(", of which the preStop sleep takes %s", s.sleep)
	}
	return text
}

// graceLine returns the line of a pod that gives a grace period.
func graceLine(d time.Duration) string {
	return fmt.Sprintf("terminationGracePeriodSeconds: %v", d.Seconds())
}

func graceTooShort(s *stop, report reporter) {
	switch {
	case !s.noneLeft:
	case s.sleep > 0:
		report(s.sleepLine,
			"preStop sleeps %s, and %s: KILL comes 2 s after the stop signal; write %s",
			s.sleep, s.graceText(), graceLine(s.sleep+30*time.Second))
	case s.serves() || s.entry.Holds() || s.hold.Holds():
		report(s.pod.Grace.line, "%s: KILL comes at once, without a hold; write %s", s.graceText(),
			graceLine(30*time.Second))
	}
	for _, l := range s.lameducks() {
		var misfit *shim.FlagError
		if errors.As(l.misfit, &misfit) {
			report(cmp.Or(s.pod.Grace.line, l.line), "%s: %v; %s", s.graceText(), misfit.Err, misfit.Remedy)
		}
	}
}

// graceDiffers: with a hook of unknown length, or in a sidecar, whose stop begins later, less
// than the pod's grace period is fine.
func graceDiffers(s *stop, report reporter) {
	busy := s.Lifecycle.PreStop != nil && (s.sleep == 0 || len(s.hook) > 2)
	for _, l := range s.lameducks() {
		told, right := l.outline, l.right
		if told == nil || right == nil || told.Grace == right.Grace || told.Grace == s.grace {
			continue
		}
		how := "is told"
		fits := told.Grace < right.Grace && (s.RestartPolicy == "Always" || busy && l == &s.entry)
		if told.GraceAssumed {
			how = "assumes"
			fits = fits || !l.Holds() || s.isOpen()
		}
		consequence := shim.InWords("the hold ends after %s, and could last %s", told.MaxHold, right.MaxHold)
		switch {
		case right.MaxHold == told.MaxHold:
			consequence = "what it reports of a long stop comes at the wrong time"
		case right.MaxHold < told.MaxHold:
			consequence = shim.InWords("the hold may last %s, and KILL comes before the command has time to stop",
				told.MaxHold)
		}
		remedy := fmt.Sprintf("give --grace-period=%v", right.Grace.Seconds())
		if s.pod.Grace.line == 0 && told.Grace > right.Grace && !told.GraceAssumed {
			remedy = "write " + graceLine(told.Grace+s.sleep)
		}
		if !fits {
			report(l.lineOf("grace-period"), "lameduck %s a grace period of %s, but %s: %s; %s",
				how, told.Grace, s.graceText(), consequence, remedy)
		}
	}
}

func preStopAddsUp(s *stop, report reporter) {
	switch {
	case s.sleep == 0 || s.noneLeft:
	case s.hold.Holds():
		report(s.sleepLine,
			"the hook sleeps %s beside lameduck hold, which knows when traffic has stopped: they add up; leave the "+
				"sleep out, or give --delay=%v instead", s.sleep, s.sleep.Seconds())
	case s.entry.outline != nil && s.entry.outline.MaxHold > 0:
		report(s.sleepLine, "preStop sleeps %s, and then lameduck holds, up to %s: they add up; leave the preStop out",
			s.sleep, s.entry.outline.MaxHold)
	}
}
