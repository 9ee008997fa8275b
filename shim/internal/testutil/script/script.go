// Package script reads the scripts that specify the stop sequence.
//
// A script is a text: what happens above the line, with its time, and below it
// what lameduck does.
//
//	# TERM is held for the delay, and goes out as USR1.
//	flags --delay=2s --rewrite=TERM:USR1
//	real
//
//	0s    TERM
//	3s    exit 0
//	----
//	0s    says TERM: holding 2 s, then USR1; a second TERM skips
//	2s    sends USR1
//	3s    leaves 0
//
// Its first line says what went wrong once, or could. Of the events, a name is
// a signal that reaches lameduck, "early NAME" one that does before the command
// has been started; "exit N" and "killed NAME" are ends of the command, "stopped
// NAME" and "continued" what else may become of it, "orphan" is the end of some
// other process, and "look WORD" is what a look at the traffic says.
//
// Above them stands how the world is: "flags" and "env NAME=VALUE" are given to
// lameduck, "others N" is how many other processes there are (numbered from
// 201), "catches NAME..." is what the command handles, "job" says that lameduck
// is not PID 1, and "real" that the script is played on the built binary too.
package script

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// line parts what happens from what is done.
const line = "----"

// Step is one event or action, and when: since the command was started.
type Step struct {
	At   time.Duration
	Text string
}

// Script is a script that was read.
type Script struct {
	Name    string // the file's name
	Flags   []string
	Env     []string
	Real    bool
	Job     bool
	Others  int
	Catches []string
	Events  []Step
	Actions []Step
	header  string // the text up to the actions
}

// Load reads the scripts that pattern matches, in the order of their names.
func Load(pattern string) ([]*Script, error) {
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no script matches %q", pattern)
	}
	var scripts []*Script
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		s, parseErr := Parse(filepath.Base(path), string(text))
		if err = cmp.Or(err, readErr, parseErr); err != nil {
			return nil, err
		}
		scripts = append(scripts, s)
	}
	return scripts, err
}

// Parse reads one script.
func Parse(name, text string) (*Script, error) {
	above, below, ok := strings.Cut(text, "\n"+line+"\n")
	if !ok {
		return nil, fmt.Errorf("%s: no line of %s", name, line)
	}
	s := &Script{Name: name, header: above + "\n" + line + "\n"}
	for row := range strings.Lines(above) {
		if err := s.read(strings.TrimSpace(row)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for row := range strings.Lines(below) {
		step, err := parseStep(strings.TrimSpace(row))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Actions = append(s.Actions, step)
	}
	return s, nil
}

// read takes one row of what is above the line.
func (s *Script) read(row string) error {
	word, rest, _ := strings.Cut(row, " ")
	switch word {
	case "", "#":
	case "flags":
		s.Flags = strings.Fields(rest)
	case "env":
		s.Env = append(s.Env, rest)
	case "real":
		s.Real = true
	case "job":
		s.Job = true
	case "catches":
		s.Catches = strings.Fields(rest)
	case "others":
		n, err := strconv.Atoi(rest)
		s.Others = n
		return err
	default:
		step, err := parseStep(row)
		s.Events = append(s.Events, step)
		return err
	}
	return nil
}

func parseStep(row string) (Step, error) {
	at, text, ok := strings.Cut(row, " ")
	d, err := time.ParseDuration(at)
	if !ok || err != nil {
		return Step{}, fmt.Errorf("%q: want a time and what happens", row)
	}
	return Step{At: d, Text: strings.TrimSpace(text)}, nil
}

// Format is the script's text with the given actions.
func (s *Script) Format(actions []Step) string {
	var b strings.Builder
	b.WriteString(s.header)
	for _, a := range actions {
		fmt.Fprintf(&b, "%-5s %s\n", fmt.Sprintf("%vs", a.At.Seconds()), a.Text)
	}
	return b.String()
}
