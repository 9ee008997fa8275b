package main

import (
	"fmt"
	"strings"
	"time"
)

// finding is a fault in a file, with the remedy.
type finding struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Rule string `json:"rule"`
	Text string `json:"message"`
	subject
}

// subject is what a finding is about.
type subject struct {
	Object    string `json:"object,omitempty"` // KIND/NAME; "": a Dockerfile
	Container string `json:"container,omitempty"`
}

// prefix returns what is in front of a text.
func (s subject) prefix() string {
	switch {
	case s.Object == "":
		return ""
	case s.Container == "":
		return s.Object + ": "
	}
	return s.Object + ", container " + s.Container + ": "
}

// reporter adds a finding of a rule. Without a line, it is on the container's.
type reporter func(line int, format string, args ...any)

// oneLine returns a text without the ends of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// seconds returns a time in seconds, with the unit.
func seconds(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }
