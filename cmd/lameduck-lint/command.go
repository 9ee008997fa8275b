package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// command is the command of a container or a hook, or a command in a shell's script.
type command struct {
	program    word
	args       []word
	subcommand string // of lameduck, before args
	unclear    bool   // words that only the shell knows are left out, with those behind them
	always     bool   // nothing keeps the script from the command
	front
}

func (c *command) words() []word { return append([]word{c.program}, c.args...) }

func (c *command) String() string { return strings.Join(texts(c.words()), " ") }

// front is what stays in front of a command.
type front struct {
	init     string   // the name of an init, or ""
	group    bool     // the init signals the process group
	rewrites []string // by the init
	shell    string   // a shell that does not execute the command in its own place, or ""
	file     bool     // of a script's file: no shell executes the last command of a file so
	traps    bool     // the script may have a handler for the stop signal
	depth    int
}

var (
	// initRE matches the programs that lameduck replaces, by the name too.
	initRE   = regexp.MustCompile(`^(.*/)?(tini|tini-static|docker-init|dumb-init|catatonit|podman-init)$`)
	userRE   = regexp.MustCompile(`^(.*/)?(su-exec|gosu)$`)
	shellRE  = regexp.MustCompile(`^(.*/)?(ba|da|a|z|k)?sh$`)
	scriptRE = regexp.MustCompile(`^-\w*c$`) // the flag before a script
	fileRE   = regexp.MustCompile(`^#! */(usr/)?bin/(env )?(ba|da|a)?sh\b`)
)

// commandsIn returns what the words of a container or a hook run: one command, or the commands of
// a script, behind inits and programs that execute their arguments.
func (c *container) commandsIn(words []word) []command { return c.behind(front{}, words) }

func (c *container) behind(f front, words []word) []command {
	f.depth++
	if len(words) == 0 || f.depth > 9 { // a script may execute itself
		return nil
	}
	program, args := words[0], words[1:]
	first := max(0, slices.IndexFunc(args, word.isPlain))
	switch {
	case initRE.MatchString(program.text):
		var flags initFlags
		rest, err := cli.ParseOther(&flags, texts(args))
		if rest = cli.DropDashes(rest); err == nil && len(rest) > 0 {
			f.init, f.rewrites = program.base(), flags.Rewrite
			f.group = flags.Group || c.variable("TINI_KILL_PROCESS_GROUP") != "" ||
				f.init == "dumb-init" && !flags.SingleChild && c.variable("DUMB_INIT_SETSID") != "0"
			return c.behind(f, args[len(args)-len(rest):])
		}
	case userRE.MatchString(program.text) && len(args) > 1:
		return c.behind(f, args[1:])
	case shellRE.MatchString(program.text) && len(args) > 0:
		if scriptRE.MatchString(args[max(first-1, 0)].text) {
			inner := f
			inner.shell = program.base()
			return c.inScript(f, inner, args[first].text, args[first].line, args[min(first+2, len(args)):])
		}
		program, args = args[first], args[first+1:]
	}
	if text := c.file(program.text); fileRE.MatchString(text) || text != "" && program != words[0] {
		inner := f
		inner.shell, inner.file = program.base(), true
		return c.inScript(f, inner, text, words[0].line, args)
	}
	return []command{{program: words[0], args: words[1:], always: true, front: f}}
}

// initFlags are the flags of tini, dumb-init and catatonit.
type initFlags struct {
	Group       bool     `short:"g"`
	SingleChild bool     `short:"c"`
	Rewrite     []string `short:"r"`
	Subreaper   bool     `short:"s"`
	Warn        bool     `short:"w"`
	Verbose     int      `short:"v" type:"counter"`
	Pdeath      string   `short:"p"`
	Expect      []string `short:"e"`
}

// callIn returns the first call of lameduck in commands, or nil.
func callIn(list []command) *command {
	for _, c := range list {
		if c.program.base() == "lameduck" {
			if len(c.args) > 0 && cli.IsSubcommand(c.args[0].text) {
				c.subcommand, c.args = c.args[0].text, c.args[1:]
			}
			return &c
		}
	}
	return nil
}

// sleepIn returns the time that the commands of a hook sleep in any case, and the line.
func sleepIn(list []command) (total time.Duration, line int) {
	for _, c := range list {
		if c.always && c.program.base() == "sleep" && len(c.args) > 0 {
			length, _ := shim.ParseDuration(c.args[0].text)
			total += length
			line = c.args[0].line
		}
	}
	return total, line
}
