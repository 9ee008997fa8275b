package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// container has the known facts about a container in a manifest or a Dockerfile.
type container struct {
	line          int
	image         string
	words         []word // the command
	complete      bool   // words is complete; else an unknown entrypoint comes first
	env           []variable
	moreVariables bool // variables from elsewhere may be added
	realInit      bool // the init in front of the program was installed under its own name
	found         []finding

	program program   // the program in words, if given
	entry   *instance // the lameduck in words, or nil
}

// instance is a lameduck in a container: the entrypoint or a hook.
type instance struct {
	*reading
	explained
	line     int
	command  []word
	complete bool // the words are complete
	starts   bool // lameduck starts
}

func (c *container) report(line int, rule, format string, args ...any) {
	f := finding{Line: line, Rule: rule, Text: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
	if !slices.Contains(c.found, f) {
		c.found = append(c.found, f)
	}
}

// findEntry sets program and entry. If the container is hooked, with a preStop hook that runs
// lameduck, variables alone do not make the entrypoint a lameduck.
func (c *container) findEntry(hooked bool) {
	if c.complete {
		c.program = programOf(c.words)
	}
	line := c.line
	if len(c.words) > 0 {
		line = c.words[0].line
	}
	switch p := c.program; {
	case c.complete && p.isLameduck():
		c.entry = c.newInstance(false, p.words[0].line, p.words[1:])
		c.entry.complete = true
		if c.entry.asks {
			c.entry = nil
		}
	case c.complete && p.behind != "" && !c.realInit && c.lameduckVariable() != nil && !hooked: // lameduck under the name of an init, perhaps
		c.entry = c.newInstance(false, line, append([]word{{"--", line}}, p.words...))
	case !c.complete && programOf(c.words).isLameduck(): // the image's entrypoint executes it
		p := programOf(c.words)
		c.entry = c.newInstance(false, p.words[0].line, p.words[1:])
	case !c.complete && flagged(c.words):
		c.entry = c.newInstance(false, line, c.words)
	case !c.complete && !hooked && (c.lameduckVariable() != nil || strings.Contains(c.image, "lameduck")):
		c.entry = c.newInstance(false, line, append([]word{{"--", line}}, c.words...))
	}
}

// newInstance reads a lameduck's words, and adds lameduck's complaints to the findings.
func (c *container) newInstance(hook bool, line int, args []word) *instance {
	d := &instance{reading: read(hook, line, args, c.env), line: line}
	d.command = args[len(args)-min(len(args), len(d.cfg.Command)):]
	for _, p := range d.problems {
		c.report(p.line, p.rule, "%s", p.text)
	}
	if d.open {
		return d
	}
	err := d.validate()
	if err != nil {
		c.report(d.lineIn(err), badFlag, "%s: %v", d.outcome(), err)
		return d
	}
	d.explained, err = explain(d.cfg)
	d.starts = err == nil
	return d
}

// lineIn returns the line of the first flag that an error names.
func (d *instance) lineIn(err error) int {
	for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(err.Error(), -1) {
		if d.gave(m[1]) {
			return d.given[m[1]].line
		}
	}
	return d.line
}

// reportUnusedFlags reports flags that lameduck refuses for lack of effect. Variables without
// effect are only warnings of lameduck.
func (c *container) reportUnusedFlags(d *instance) {
	for _, u := range d.CheckUnused(&d.cfg) {
		if u.Refused() {
			c.report(d.given[u.Flag].line, badFlag, "lameduck does not start: %v, or leave it out", u)
		}
	}
}

// lameduckVariable returns the first variable with lameduck's prefix, or nil.
func (c *container) lameduckVariable() *variable {
	env := environ(c.env)
	for i, v := range c.env {
		if strings.HasPrefix(v.name, cli.Prefix) && !cli.Foreign(v.name, v.value.text, env) && v.value.text != "" {
			return &c.env[i]
		}
	}
	return nil
}

// reportUnusedVariables reports variables for lameduck in a container that does not run lameduck.
func (c *container) reportUnusedVariables(others ...[]word) {
	v := c.lameduckVariable()
	if v == nil || c.entry != nil || !c.complete || c.program.unclear || mentions(c.words) || slices.ContainsFunc(others, mentions) {
		return
	}
	if c.realInit {
		c.report(v.value.line, unusedVariable, "%s has no effect: %s does not read it; put lameduck in the place of %[2]s, or remove the variable", v.name, c.program.behind)
		return
	}
	c.report(v.value.line, unusedVariable, "%s has no effect: this container runs %s without lameduck; put lameduck in front, or remove the variable", v.name, name(c.program.words))
}

// reportStopSignal reports a stop signal that does not begin a stop.
func (c *container) reportStopSignal(field, text string, line int) {
	s, err := shim.ParseSignal(text)
	if d := c.entry; err == nil && d != nil && d.starts && d.sequence && !c.moreVariables && !d.begins(s) {
		c.report(line, stopSignal, "%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%v (or --rewrite=TERM:%v, a preset that names it), or remove %s",
			field, s, s, s, field)
	}
}

// reportShells reports a shell in front of the program that should get the signals.
func (c *container) reportShells(job bool) {
	p := c.program
	if c.complete && p.shellStays(c.image) && (!job || mentions(p.words)) {
		c.report(c.words[0].line, noExec, "%s forwards no signals: %s does not learn of the stop, and is killed; %s", p.frontShell(), p.awaited(), p.remedy())
	}
	if d := c.entry; d != nil && d.complete && len(d.command) > 0 && !d.cfg.Group {
		if p := programOf(d.command); p.shellStays(c.image) {
			c.report(d.command[0].line, noExec, "%s gets lameduck's signal and does not forward it: %s does not learn of the stop, and is killed; %s, or give --group", p.frontShell(), p.awaited(), p.remedy())
		}
	}
}

// flagged reports whether words begin with flags that only lameduck has.
func flagged(words []word) bool {
	own := []string{"--until", "--grace-period", "--quiet-for", "--max-silence", "--wait-gone", "--on-stop", "--stop-schedule", "--ignore-probes", "--no-ignore-probes"}
	for _, w := range words {
		flag, _, _ := strings.Cut(w.text, "=")
		switch {
		case !strings.HasPrefix(flag, "-"):
			return false
		case slices.Contains(own, flag):
			return slices.ContainsFunc(words, func(w word) bool { return !strings.HasPrefix(w.text, "-") }) // a command follows
		}
	}
	return false
}
