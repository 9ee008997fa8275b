package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// command is the command of a container or a hook, or a command in a shell's script.
type command struct {
	Program    word
	args       []word
	Subcommand string // of lameduck, before args
	unclear    bool   // words that only the shell knows are left out, with those behind them
	always     bool   // nothing keeps the scripts from the command
	text       string // as it stands in a script, if words are left out

	// What stays in front of the command.
	Init     string   // the name of an init, or ""
	Group    bool     // the init signals the process group
	Rewrites string   // by the init
	Shell    string   // a shell that does not execute the command in its own place, or ""
	File     bool     // of a script's file: no shell executes the last command of a file so
	Traps    bool     // the script may have a handler for the stop signal
	scripts  []string // in which the command is
}

func (c *command) words() []word { return append([]word{c.Program}, c.args...) }

func (c *command) String() string { return cmp.Or(c.text, joined(c.words())) }

const (
	// inits are the programs that lameduck replaces, by the name too.
	inits pattern = `^(.*/)?(tini|tini-static|docker-init|dumb-init|catatonit|podman-init)$`
	// through is the beginning of a command that executes the rest of its words, or passes signals on to it.
	through pattern = `^(\S*/)?((tini|tini-static|docker-init|dumb-init|catatonit|podman-init)` +
		`( -\w*[epr] \S+| --rewrite \S+| -\S+)*|(su-exec|gosu) \S+|sudo( -[ugDhpCRTrt] \S+| -\S+| \w+=\S*)*|` +
		`setpriv( --(re[ug]id|groups|(inh|ambient)-caps|bounding-set) \S+| -\S+)*|env( -u \S+| -\S+| \w+=\S*)*|nohup) `
	groups          pattern = ` -(\w*g|-group)`
	singles         pattern = ` -(\w*c|-single)`
	tiniGroups      pattern = `\{TINI_KILL_PROCESS_GROUP [^ }]`
	dumbInitSingles pattern = `\{DUMB_INIT_SETSID 0 `
	rewrites        pattern = ` (-\w*r|--rewrite)[ =]?\S+`
	shells          pattern = `^(.*/)?(ba|da|a|z|k)?sh$`
	scriptFlag      pattern = `^-\w*c$` // the flag before a script
	hashBang        pattern = `^#! */(usr/)?bin/(env )?(ba|da|a)?sh\b`
)

// commandsIn returns what the words of a container or a hook run: one command, or the commands of
// a script, behind inits and programs that execute their arguments.
func (c *container) commandsIn(words []word) []command { return c.behind(command{always: true}, words) }

// behind is commandsIn for words with something in front.
func (c *container) behind(of command, words []word) (list []command) {
	if len(words) == 0 {
		return nil
	}
	front := through.compile().FindString(joined(words))
	if n := strings.Count(front, " "); 0 < n && n < len(words) {
		if inits.matches(words[0].text) {
			variables := fmt.Sprint(c.Env)
			of.Init, of.Rewrites = words[0].Base(), rewrites.compile().FindString(front)
			of.Group = groups.matches(front) || tiniGroups.matches(variables) ||
				of.Init == "dumb-init" && !singles.matches(front) && !dumbInitSingles.matches(variables)
		}
		return c.behind(of, words[n:])
	}
	of.Program, of.args = words[0], words[1:]
	args := of.args
	first := max(0, slices.IndexFunc(args, word.isPlain))
	shell, line := of.Program.Base(), of.Program.line
	var script string
	isFile, isShell := true, shells.matches(of.Program.text) && len(args) > 0
	switch {
	case isShell && scriptFlag.matches(args[max(first-1, 0)].text):
		script, isFile = args[first].text, false
		line = args[first].line
		args = args[min(first+2, len(args)):]
	case isShell:
		shell = args[first].Base()
		script = c.File(args[first].text)
		args = args[first+1:]
	default:
		if text := c.File(of.Program.text); hashBang.matches(text) {
			script = text
		}
	}
	if script == "" && shell != "lameduck" {
		isOurs := func(w word) bool { return w.Base() == "lameduck" }
		if i := slices.IndexFunc(args, isOurs); i >= 0 && areOurs(args[i+1:]) {
			return c.behind(of, args[i:]) // the program executes its arguments
		}
	}
	if script == "" || slices.Contains(of.scripts, script) { // which may execute itself
		return []command{of}
	}
	calls, traps := parse(script, texts(args))
	for _, call := range calls {
		f := of
		f.Traps, f.scripts = of.Traps || traps, append(slices.Clone(of.scripts), script)
		f.always = of.always && call.always
		if call.unclear && !of.unclear {
			f.unclear, f.text = true, call.text
		}
		switch {
		case call.exec:
		case isFile:
			f.Shell, f.File = fmt.Sprintf("the shell of %s, line %d,", shell, call.line), true
		default:
			f.Shell = shell
		}
		list = append(list, c.behind(f, wordsAt(line, call.words))...)
	}
	return list
}

// callIn returns the first call of lameduck in commands, or nil.
func callIn(list []command) *command {
	for _, c := range list {
		if c.Program.Base() == "lameduck" {
			if len(c.args) > 0 && cli.IsSubcommand(c.args[0].text) {
				c.Subcommand, c.args = c.args[0].text, c.args[1:]
			}
			return &c
		}
	}
	return nil
}

// Server returns the preset of the server that the command runs, or nil.
func (c *command) Server() *shim.Preset {
	plan, err := shim.Review(shim.Config{Command: texts(c.words()), Preset: shim.AutoPreset})
	if err != nil || plan.Server.Name == "" || lookUp("call", c.Line())["controls"] != "" {
		return nil
	}
	return plan.Server
}

// Line returns the command without the folder of its program.
func (c *command) Line() string {
	return strings.Replace(c.String(), c.Program.text, c.Program.Base(), 1)
}

// A flag of lameduck that hardly any other program has, with a value that lameduck takes, at the beginning of words, and
// behind other flags.
const (
	flags = `--(until[= ](elapsed|settled|quiet|drained)|(quiet-for|max-silence|max-delay|goaway|count-port|` +
		`ignore-port)[= ]\d|(wait-gone|alive-file|termination-log)[= ][./]|wait-url[= ]\S+:|on-stop[= ]\S|` +
		`stop-schedule[= ][A-Z\d]|(no-)?ignore-probes\b|ignore-peer[= ][\da-f:]|health-during[= ](pass|fail|close)|` +
		`parent-death-signal[= ][A-Z\d])`
	ours       pattern = "^" + flags
	oursBehind pattern = `^(-\S+ )*(--grace-period|` + flags + `)`
)

// areOurs reports whether words are flags, of which only lameduck has one, and a command.
func areOurs(words []word) bool {
	return oursBehind.matches(joined(words)) && slices.ContainsFunc(words, word.isPlain)
}
