package main

import (
	"fmt"
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
	scripts  []string // in which the command is
}

const (
	// inits are the programs that lameduck replaces, by the name too.
	inits      pattern = `^(.*/)?(tini|tini-static|docker-init|dumb-init|catatonit|podman-init)$`
	users      pattern = `^(.*/)?(su-exec|gosu)$`
	shells     pattern = `^(.*/)?(ba|da|a|z|k)?sh$`
	scriptFlag pattern = `^-\w*c$` // the flag before a script
	hashBang   pattern = `^#! */(usr/)?bin/(env )?(ba|da|a)?sh\b`
)

// commandsIn returns what the words of a container or a hook run: one command, or the commands of
// a script, behind inits and programs that execute their arguments.
func (c *container) commandsIn(words []word) []command {
	if len(words) == 0 {
		return nil
	}
	return c.behind(front{}, words)
}

func (c *container) behind(f front, words []word) (list []command) {
	program, args := words[0], words[1:]
	first := max(0, slices.IndexFunc(args, word.isPlain))
	shell, line := program.base(), program.line
	script, isFile := "", true
	switch {
	case inits.matches(program.text):
		if rest := c.behindInit(&f, program.base(), args); len(rest) > 0 {
			return c.behind(f, rest)
		}
	case users.matches(program.text) && len(args) > 1:
		return c.behind(f, args[1:])
	case shells.matches(program.text) && len(args) > 0 && scriptFlag.matches(args[max(first-1, 0)].text):
		script, isFile = args[first].text, false
		line = args[first].line
		args = args[min(first+2, len(args)):]
	case shells.matches(program.text) && len(args) > 0:
		shell = args[first].base()
		script = c.file(args[first].text)
		args = args[first+1:]
	default:
		script = c.file(program.text)
		if !hashBang.matches(script) {
			script = ""
		}
	}
	if script == "" && shell != "lameduck" {
		isOurs := func(w word) bool { return w.base() == "lameduck" }
		if i := slices.IndexFunc(args, isOurs); i >= 0 && startsWithFlag(args[i+1:]) {
			return c.behind(f, args[i:]) // the program executes its arguments
		}
	}
	if script == "" || slices.Contains(f.scripts, script) { // which may execute itself
		return []command{{program: words[0], args: words[1:], always: true, front: f}}
	}
	calls, traps := parse(script, texts(args))
	f.traps, f.scripts = f.traps || traps, append(slices.Clone(f.scripts), script)
	for _, call := range calls {
		f := f
		switch {
		case call.exec:
		case isFile:
			f.shell, f.file = fmt.Sprintf("the shell of %s, line %d,", shell, call.line), true
		default:
			f.shell = shell
		}
		for _, ran := range c.behind(f, wordsAt(line, call.words)) {
			ran.always, ran.unclear = ran.always && call.always, ran.unclear || call.unclear
			list = append(list, ran)
		}
	}
	return list
}

// behindInit returns the words that an init runs, and notes what the init does to signals.
func (c *container) behindInit(f *front, init string, args []word) []word {
	var flags initFlags
	rest, err := cli.ParseOther(init, &flags, texts(args))
	if err != nil {
		return nil
	}
	f.init, f.rewrites = init, flags.Rewrite
	f.group = flags.Group || c.variable("TINI_KILL_PROCESS_GROUP") != "" ||
		init == "dumb-init" && !flags.SingleChild && c.variable("DUMB_INIT_SETSID") != "0"
	return args[len(args)-len(cli.DropDashes(rest)):]
}

// initFlags are the flags of tini, dumb-init and catatonit.
type initFlags struct {
	Group       bool     `short:"g"`
	SingleChild bool     `short:"c"`
	Rewrite     []string `short:"r"`
	Subreaper   bool     `short:"s"`
	Warn        bool     `short:"w"`
	Verbose     []bool   `short:"v" type:"bool"`
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
