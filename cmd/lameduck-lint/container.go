package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// container has the known facts about a container in a manifest or a Dockerfile.
type container struct {
	line     int
	image    string
	words    []word // the command
	complete bool   // words is complete; else an unknown entrypoint comes first
	env      []variable
	more     bool // variables from elsewhere may be added
	found    []finding

	entry *lameduck // the entrypoint, or nil
}

func (c *container) report(line int, rule, format string, args ...any) {
	f := finding{Line: line, Rule: rule, Text: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
	if !slices.Contains(c.found, f) {
		c.found = append(c.found, f)
	}
}

// findEntry sets entry. In a container with a hook that calls lameduck, variables alone do not
// make the entrypoint a lameduck.
func (c *container) findEntry(hooked bool) {
	line := c.line
	if len(c.words) > 0 {
		line = c.words[0].line
	}
	perhaps := !hooked && (c.hasVariable() || strings.Contains(c.image, "lameduck"))
	found := callIn(c.words)
	switch {
	case found != nil && found.subcommand == "hold" && !found.script:
		c.report(found.program.line, noCommand,
			"the container runs lameduck hold, which runs no command and ends after a hold; leave out hold and give "+
				"the command, or make it the preStop hook")
	case found != nil && found.subcommand == "":
		c.entry = c.read(false, found.program.line, found.args, found.unclear)
		if c.entry != nil {
			c.entry.whole = c.complete
		}
		c.reportShell(found)
	case found != nil:
	case !c.complete && c.startsWithFlag():
		c.entry = c.read(false, line, c.words, false)
	case !c.complete && perhaps:
		c.entry = c.read(false, line, append([]word{{"--", line}}, c.words...), false)
	case perhaps && len(c.words) > 0 && slices.Contains(inits, c.words[0].base()):
		c.entry = c.read(false, line, []word{{"--", line}}, false) // lameduck under an init's name, perhaps
	}
}

// hasVariable reports whether a variable is lameduck's.
func (c *container) hasVariable() bool {
	return slices.ContainsFunc(c.env, func(v variable) bool {
		return strings.HasPrefix(v.name, cli.Prefix) && v.value.text != ""
	})
}

// startsWithFlag reports whether the words are flags, of which only lameduck has one, and a
// command.
func (c *container) startsWithFlag() bool {
	command := slices.IndexFunc(c.words, func(w word) bool { return !strings.HasPrefix(w.text, "-") })
	for i := range max(command, 0) {
		if flagOf(c.words[i]) == "--grace-period" || takes(c.words[i], c.words[i+1]) {
			return true
		}
	}
	return false
}

// takes reports whether a word, or the word and the next, are a distinctive flag of lameduck
// with a value that lameduck takes. Another program may have a flag of that name.
func takes(w, next word) bool {
	if !slices.Contains(distinctive, flagOf(w)) {
		return false
	}
	words := []string{w.text}
	if flagOf(w) == w.text && next.text != "" && !strings.HasPrefix(next.text, "-") {
		words = append(words, next.text)
	}
	line, err := cli.ParseRun(words, nil)
	return err == nil && !slices.ContainsFunc(line.Given(), func(g cli.Given) bool { return g.Err != nil })
}

// flagOf returns a word without a value.
func flagOf(w word) string {
	flag, _, _ := strings.Cut(w.text, "=")
	return flag
}

// reportShell reports a shell that stays in front of lameduck. bash, BusyBox and others execute
// a script's only command in their own place; dash does not.
func (c *container) reportShell(found *call) {
	small := strings.Contains(c.image, "alpine") || strings.Contains(c.image, "busybox")
	if shell := c.words[0].base(); found.script && !found.exec && !small && (shell == "sh" || shell == "dash") {
		c.report(found.program.line, noExec,
			"%s (if it is dash) forwards no signals: lameduck does not learn of the stop, and is killed; put exec "+
				"before %s", shell, found.program.text)
	}
}

// reportOneWord reports a command line in one word, and the outcome.
func (c *container) reportOneWord(words []word, outcome string) {
	if len(words) == 0 {
		return
	}
	first, _, isLine := strings.Cut(words[0].text, " ")
	if isLine && (word{text: first}).base() == "lameduck" {
		c.report(words[0].line, noProgram,
			"no shell splits %q into words, so %s; make each word an item of its own", words[0].text, outcome)
	}
}

// reportNoCommand reports a lameduck without a command, and what to do. An image from scratch
// is for copying.
func (c *container) reportNoCommand(remedy string) {
	if l := c.entry; l != nil && l.whole && !l.unclear && len(l.command) == 0 && c.image != "scratch" {
		c.report(l.line, noCommand, "lameduck does not start: no command to run: %s", remedy)
	}
}

// reportCommand reports a command of lameduck that is a lameduck too, gets lameduck's flags, or
// does not go with the preset.
func (c *container) reportCommand() {
	l := c.entry
	if l == nil || l.unclear || len(l.command) == 0 {
		return
	}
	if inner := callIn(l.command); inner != nil {
		c.report(inner.program.line, holdTwice,
			"lameduck runs another lameduck, which is of no use, or adds a hold to the hold; leave one of them out")
		return
	}
	c.reportMisplaced(l.command)
	if l.whole {
		c.reportPreset(l)
	}
}

// distinctive are flags that hardly any other program has.
var distinctive = []string{
	"--until", "--quiet-for", "--max-silence", "--max-delay", "--wait-gone", "--on-stop", "--stop-schedule",
	"--ignore-probes", "--no-ignore-probes", "--count-port", "--ignore-port", "--ignore-peer", "--alive-file",
	"--health-during", "--parent-death-signal", "--termination-log",
}

// reportMisplaced reports flags of lameduck among the arguments of the command.
func (c *container) reportMisplaced(command []word) {
	for i, w := range command[1:] {
		if w.text == "--" {
			return
		}
		var next word
		if i+2 < len(command) {
			next = command[i+2]
		}
		if takes(w, next) {
			c.report(w.line, misplacedFlag,
				"%s comes after the command, so %s gets the flag, and lameduck does not: put the flag before %[2]s, "+
					"unless %[2]s has a flag of that name", w.text, command[0].text)
		}
	}
}

// presetNeeded are the servers that drop requests at TERM.
var presetNeeded = []string{"nginx", "httpd", "haproxy", "php-fpm"}

// reportPreset reports a preset of a server that is not the command, and a server that drops
// requests at TERM without a preset.
func (c *container) reportPreset(l *lameduck) {
	command := slices.Clone(l.cfg.Command)
	command[0] = strings.TrimSuffix(command[0], "-foreground") // of httpd's image
	likely, err := shim.NewOutline(shim.Config{Command: command, Preset: shim.AutoPreset})
	own := l.cfg.Schedule != nil || slices.ContainsFunc(l.cfg.Rewrites, rewritesTERM)
	if err != nil || likely.Preset == nil || own {
		return
	}
	server := likely.Preset
	told := func(s shim.Signal) bool { return slices.Contains(l.cfg.StopSignals, s) }
	switch named := l.cfg.Preset; {
	case named == "":
		needed := slices.Contains(presetNeeded, server.Name) && !slices.ContainsFunc(server.StopSignals, told)
		if needed && l.holds() && !c.more {
			c.report(l.line, wrongPreset,
				"after the hold lameduck sends TERM, at which %s drops requests in flight; give --preset=%[1]s, "+
					"unless the image sets LAMEDUCK_PRESET", server.Name)
		}
	case l.outline != nil && l.outline.Preset != nil && l.outline.Preset.Schedule != server.Schedule:
		c.report(l.lineOf("--preset"), wrongPreset,
			"the preset is that of %s, but the command is %s; give --preset=%[2]s", named, server.Name)
	}
}

func rewritesTERM(r shim.Rewrite) bool { return r.From.String() == "TERM" }

// reportStopSignal reports a stop signal that does not begin a stop.
func (c *container) reportStopSignal(field, text string, line int) {
	s, err := shim.ParseSignal(text)
	l := c.entry
	if err != nil || l == nil || !l.whole || l.outline == nil || !l.outline.Sequence || c.more {
		return
	}
	begins := slices.ContainsFunc(l.outline.Starts, func(start shim.Start) bool { return start.Signal == s })
	presetUnknown := l.cfg.Preset == shim.AutoPreset && l.outline.Preset == nil
	if !begins && !presetUnknown {
		c.report(line, stopSignal,
			"%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%v (or "+
				"--rewrite=TERM:%v, a preset that names it), or remove %s", field, s, s, s, field)
	}
}
