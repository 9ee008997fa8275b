package plays

import (
	_ "embed"
	"strconv"
	"strings"
	"time"
)

// Port is every server's.
const Port = 8080

// Step is a verb and its argument.
type Step struct{ Verb, Arg string }

// Sessions are steps and plays by name.
type Sessions map[string]string

//go:embed sessions.txt
var sessions string

// ReadSessions returns the sessions of sessions.txt.
func ReadSessions() Sessions {
	all := Sessions{}
	for _, columns := range Rows(sessions) {
		all[columns[0]] = columns[1]
	}
	return all
}

// Steps reads steps, separated by "; ". A verb that names a session stands for its steps, with
// the argument in place of $1.
func (all Sessions) Steps(text string) []Step {
	var steps []Step
	for part := range strings.SplitSeq(text, "; ") {
		verb, arg, _ := strings.Cut(strings.TrimSpace(part), " ")
		if session, known := all[verb]; known {
			steps = append(steps, all.Steps(strings.ReplaceAll(session, "$1", arg))...)
		} else if verb != "" {
			steps = append(steps, Step{verb, arg})
		}
	}
	return steps
}

// Duration reads a duration; "" is none.
func Duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// Number reads a number; "" is 0.
func Number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
