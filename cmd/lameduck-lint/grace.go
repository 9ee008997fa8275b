package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// GraceText returns the grace period in words, with what a preStop sleep takes of it.
func (s *stop) GraceText() string {
	text, _, _ := strings.Cut(s.Platform["grace"], ":")
	if text += " is "; s.Given.line == 0 {
		text += "missing, which means "
	}
	text += fmt.Sprint(s.grace.Seconds())
	if s.Sleep > 0 && s.Fits() {
		text += shim.InWords(", of which the preStop sleep takes %s", s.Sleep)
	}
	return text
}

// Longer returns the line of a grace period of which a preStop sleep leaves so many seconds.
func (s *stop) Longer(seconds float64) string {
	return fmt.Sprintf(s.Platform["grace"], s.Sleep.Seconds()+seconds)
}

// Differs reports whether a lameduck is told or assumes another grace period. With a hook of unknown length, or in a
// sidecar, whose stop begins later, less than the pod's grace period is fine.
func (a *subject) Differs() bool {
	told, right := a.Lameduck.Plan, a.Lameduck.Right.Stop.Grace
	busy := a.Lifecycle.PreStop != nil && (a.Sleep == 0 || len(a.hook) > 3)
	isLater := a.RestartPolicy == "Always" || busy && a.Lameduck.Of == "entry"
	grace := told.Stop.Grace
	fits := grace < right && isLater || told.AssumedFrom != "" && (!a.Lameduck.Holds() || a.IsOpen())
	return a.left > 0 && grace != right && grace != a.grace && !fits
}

// Compared compares the longest hold with what the pod's grace period allows.
func (a *subject) Compared() int {
	return cmp.Compare(a.Lameduck.Plan.Stop.Gate.MaxHold(), a.Lameduck.Right.Stop.Gate.MaxHold())
}

// Fits reports whether a preStop sleep leaves time, as far as it is known.
func (s *stop) Fits() bool { return s.left == 0 || s.left >= time.Second }
