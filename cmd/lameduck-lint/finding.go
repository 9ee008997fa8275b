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
}

// reporter adds a finding of a rule. Without a line, it is on the container's.
type reporter func(line int, format string, args ...any)

// oneLine returns a text without the ends of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// seconds returns a time in seconds, with the unit.
func seconds(d time.Duration) string { return fmt.Sprintf("%v s", d.Seconds()) }
