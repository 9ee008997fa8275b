// Package script reads the scripts that specify the stop sequence, and tables in tests.
//
// A file has several scripts. Each begins with its name; above the line are events with their
// times, below the line lameduck's actions.
//
//	== hold
//	# TERM is held for the delay, and goes out as USR1.
//	flags --delay=2s --rewrite=TERM:USR1
//	real
//
//	0s    TERM
//	3s    exit 0
//	----
//	0s    says TERM: holding 2 s, then USR1; a second TERM ends the wait
//	2s    sends USR1
//	3s    leaves 0
//
// The first line after the name describes a past or possible fault. An event is one of those of
// ParseEvent, or
//
//	inside NAME       a signal to lameduck, from a process of the container
//	early NAME        a signal to lameduck before the start of the command
//	hook EVENT        --on-stop ends, as the command does
//	both EVENT        the same happens to the command and to --on-stop
//	answered [ERROR]  the request of --on-stop is answered
//	old EVENT         a sample that was taken some time ago
//	executes PROGRAM  the command executes another program
//	frozen DURATION   lameduck is stopped for so long, as by the freezer of its control group
//	ends PID          one of the other processes ends, and lameduck reaps it if it is lameduck's child
//	forks PROCESS     another process begins, as one of others
//
// Lines without a time, before the events, set the scene:
//
//	flags FLAG...     lameduck's flags
//	env NAME=VALUE    an entry in lameduck's environment
//	others PROCESS... the other processes, as PID[/PARENT]:PROGRAM[:SIGNAL+...], with the signals that
//	                  they handle. The command has the PID 100.
//	catches NAME...   the signals for which the command has handlers
//	refuses           the kernel refuses all signals
//	job               lameduck is not PID 1
//	real              the script is also played on the built binary
package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// line separates events from actions.
const line = "----\n"

// Step is an event or action, and its time since the start of the command.
type Step struct {
	At   time.Duration
	Text string
}

// Script is a parsed script.
type Script struct {
	Name                        string
	Flags, Env, Others, Catches []string
	Real, Job, Refuses          bool
	Events                      []Step
	Actions                     []Step
	Text                        string
	file                        string
}

// Load reads the scripts whose paths match the pattern, in the order of their names.
func Load(pattern string) (scripts []*Script) {
	for _, path := range testutil.Must(filepath.Glob(pattern)) {
		text := string(testutil.Must(os.ReadFile(path)))
		for section := range strings.SplitSeq(strings.TrimPrefix(text, "== "), "\n== ") {
			name, body, _ := strings.Cut(section, "\n")
			s := &Script{Name: name, Text: strings.TrimSpace(body) + "\n", file: path}
			s.parse()
			scripts = append(scripts, s)
		}
	}
	return scripts
}

func (s *Script) parse() {
	steps := &s.Events
	for row := range strings.Lines(s.Text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(row), " ")
		switch {
		case word == "" || word == "#":
		case row == line:
			steps = &s.Actions
		case tables.Set(s, word, rest, strings.Fields):
		default:
			*steps = append(*steps, ParseStep(row))
		}
	}
}

// ParseStep reads a time and an event or action: "2s TERM".
func ParseStep(row string) Step {
	at, text, _ := strings.Cut(strings.TrimSpace(row), " ")
	return Step{testutil.Must(time.ParseDuration(at)), strings.TrimSpace(text)}
}

// Format returns the script's text with other actions.
func (s *Script) Format(actions []Step) string {
	header, _, _ := strings.Cut(s.Text, line)
	text := header + line
	for _, a := range actions {
		text += fmt.Sprintf("%-5s %s\n", fmt.Sprintf("%vs", a.At.Seconds()), a.Text)
	}
	return text
}

// Write replaces the script's text in its file.
func (s *Script) Write(text string) error {
	before := string(testutil.Must(os.ReadFile(s.file)))
	return os.WriteFile(s.file, []byte(strings.Replace(before, s.Text, text, 1)), 0o644)
}
