package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Line is a command line with its environment. Command is set, and Env, which lacks the
// variables of the flags.
type Line struct {
	Flags
	Given   []Given           // the values of flags: those on the command line, and then the variables
	Unknown []*shim.FlagError // variables that belong to no flag
	Faults  []*shim.FlagError // words that are left out; Tolerant adds flags

	name  string                // of the command: run, hold or watch
	all   []*kong.Flag          // of all commands; nil: name is another program's
	named map[string]*kong.Flag // those of the command, by their names
}

// Given is a value of a flag.
type Given struct {
	*kong.Flag
	Text    string
	Err     error // what is wrong with the value, a FlagError, or nil
	fromEnv bool
}

// String is the value as it was given, or, of another program's flag, in its short form.
func (g Given) String() string {
	if g.Tag.Group == "" {
		return fmt.Sprintf("-%c %s", g.Short, g.Text)
	}
	return shim.Flag(g.Name, shim.Quote(g.Text))
}

// set gives the flags their values. --help wins over an invalid one, which Config returns.
func (l *Line) set() {
	for i, g := range l.Given {
		err := errors.Unwrap(g.Parse(kong.ScanAsType(kong.FlagValueToken, g.Text), g.Target)) // without kong's own words
		if err != nil {
			l.Given[i].Err = &shim.FlagError{Flag: g.Name, Err: fmt.Errorf("%v: %w", g, err)}
		}
	}
}

// gave reports whether a flag or its variable was given.
func (l *Line) gave(flag string) bool {
	return slices.ContainsFunc(l.Given, func(g Given) bool { return g.Name == flag })
}

// refuse notes the fault of a word.
func (l *Line) refuse(word, what, remedy string) {
	l.Faults = append(l.Faults, &shim.FlagError{Flag: word, Err: errors.New(what), Remedy: remedy})
}
