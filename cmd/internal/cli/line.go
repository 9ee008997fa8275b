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
	Faults  []*shim.FlagError // words that are left out

	name  string       // of the command: run, hold or watch
	flags []*kong.Flag // of the command
}

// Given is a value of a flag.
type Given struct {
	*kong.Flag
	Text    string
	Err     error // what is wrong with the value, a FlagError, or nil
	fromEnv bool
}

func (g Given) String() string { return shim.Flag(g.Name, shim.Quote(g.Text)) }

// set gives the flag the value.
func (g Given) set() error {
	return g.Parse(kong.ScanAsType(kong.FlagValueToken, g.Text), g.Target)
}

// give gives a flag of the line a value. --help wins over an invalid one, which Config returns.
func (l *Line) give(g Given) {
	if err := g.set(); err != nil { // with the flag before it, as kong spells it
		g.Err = &shim.FlagError{Flag: g.Name, Err: fmt.Errorf("%v: %w", g, errors.Unwrap(err))}
	}
	l.Given = append(l.Given, g)
}

// gave reports whether a flag or its variable was given.
func (l *Line) gave(flag string) bool {
	return slices.ContainsFunc(l.Given, func(g Given) bool { return g.Name == flag })
}

// faultOf returns the fault of a flag or a word as it is given.
func faultOf(word, what, remedy string) *shim.FlagError {
	return &shim.FlagError{Flag: word, Err: errors.New(what), Remedy: remedy}
}
