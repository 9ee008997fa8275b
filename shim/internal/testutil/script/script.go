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
// The first line after the name describes a past or possible fault. An event is one of
//
//	NAME              a signal to lameduck, from outside of the container
//	inside NAME       a signal to lameduck, from a process of the container
//	early NAME        a signal to lameduck before the start of the command
//	exit N            the command exits
//	killed NAME       the command is killed by a signal
//	stopped NAME      the command is stopped by a signal
//	continued         the command is continued
//	orphan            another process ends
//	sample WORD       a sample of the traffic with this result
//	frozen DURATION   lameduck is stopped for so long, as by the freezer of its control group
//
// Lines without a time, before the events, set the scene:
//
//	flags FLAG...     lameduck's flags
//	env NAME=VALUE    an entry in lameduck's environment
//	others N          the number of other processes, with pids from 201 on
//	catches NAME...   the signals for which the command has handlers
//	refuses           the kernel refuses all signals to the command
//	job               lameduck is not PID 1
//	real              the script is also played on the built binary
package script

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// line separates events from actions.
const line = "----"

// Step is an event or action, and its time since the start of the command.
type Step struct {
	At   time.Duration
	Text string
}

// Script is a parsed script.
type Script struct {
	Name    string
	Flags   []string
	Env     []string
	Real    bool
	Job     bool
	Refuses bool
	Others  int
	Catches []string
	Events  []Step
	Actions []Step
	Text    string
	file    string
	header  string // the text up to the actions
}

// Load reads the scripts whose paths match the pattern, in the order of their names.
func Load(pattern string) ([]*Script, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no script matches %q", pattern)
	}
	var scripts []*Script
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for section := range strings.SplitSeq("\n"+string(text), "\n== ") {
			name, body, _ := strings.Cut(section, "\n")
			if name == "" {
				continue // before the first
			}
			s, err := Parse(name, strings.TrimRight(body, "\n")+"\n")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
			}
			s.file = path
			scripts = append(scripts, s)
		}
	}
	return scripts, nil
}

// Parse reads one script.
func Parse(name, text string) (*Script, error) {
	above, below, ok := strings.Cut(text, "\n"+line+"\n")
	if !ok {
		return nil, fmt.Errorf("%s: no line %q between events and actions", name, line)
	}
	s := &Script{Name: name, Text: text, header: above + "\n" + line + "\n"}
	for row := range strings.Lines(above) {
		if err := s.parseRow(strings.TrimSpace(row)); err != nil {
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

// parseRow adds a row above the line.
func (s *Script) parseRow(row string) error {
	word, rest, _ := strings.Cut(row, " ")
	switch word {
	case "", "#":
	case "flags":
		s.Flags = strings.Fields(rest)
	case "env":
		s.Env = append(s.Env, rest)
	case "real":
		s.Real = true
	case "refuses":
		s.Refuses = true
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
		return Step{}, fmt.Errorf("%q: give a time and an event", row)
	}
	return Step{At: d, Text: strings.TrimSpace(text)}, nil
}

// Format returns the script's text with other actions.
func (s *Script) Format(actions []Step) string {
	var b strings.Builder
	b.WriteString(s.header)
	for _, a := range actions {
		fmt.Fprintf(&b, "%-5s %s\n", fmt.Sprintf("%vs", a.At.Seconds()), a.Text)
	}
	return b.String()
}

// Write replaces the script's text in its file.
func (s *Script) Write(text string) error {
	before, err := os.ReadFile(s.file)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, []byte(strings.Replace(string(before), s.Text, text, 1)), 0o644)
}

// Rows returns the cells of a table's rows. A row is a line, and the indented lines below;
// vertical bars separate its cells. Lines that begin with # are comments.
func Rows(table string) (rows [][]string) {
	for line := range strings.Lines(strings.ReplaceAll(table, "\n    ", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, cells)
	}
	return rows
}
