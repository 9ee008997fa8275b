package main

import (
	"strings"
)

// finding is a fault in a file, with the remedy.
type finding struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Rule      string `json:"rule"`
	Text      string `json:"message"`
	Object    string `json:"object,omitempty"` // KIND/NAME; "": a Dockerfile
	Container string `json:"container,omitempty"`
}

// String returns what goes wrong, behind the object and the container.
func (f finding) String() string {
	switch {
	case f.Object == "":
		return f.Text
	case f.Container == "":
		return f.Object + ": " + f.Text
	}
	return f.Object + ", container " + f.Container + ": " + f.Text
}

// reporter adds a finding of a rule, with the words of shim.InWords. Without a line, it is on the container's.
type reporter func(line int, format string, args ...any)

// oneLine returns a text without the ends of its lines.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
