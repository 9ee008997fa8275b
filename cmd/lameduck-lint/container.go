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
	line  int
	image string
	words []word // the command
	given bool   // words is complete; else an unknown entrypoint comes first
	env   []variable
	more  bool // variables from elsewhere may be added
	found []finding

	program program // the program in words, if given
	entry   *duck   // the lameduck in words, or nil
}

// duck is a lameduck in a container: the entrypoint or a hook.
type duck struct {
	*reading
	explained
	line    int
	command []word
	whole   bool // the words are complete
	right   bool // lameduck starts
}

func (c *container) say(line int, rule, format string, args ...any) {
	f := finding{Line: line, Rule: rule, Text: strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")}
	if !slices.Contains(c.found, f) {
		c.found = append(c.found, f)
	}
}

// meet sets program and entry. If the container is hooked, with a preStop hook that runs
// lameduck, variables alone do not make the entrypoint a lameduck.
func (c *container) meet(hooked bool) {
	if c.given {
		c.program = see(c.words)
	}
	line := c.line
	if len(c.words) > 0 {
		line = c.words[0].line
	}
	switch p := c.program; {
	case c.given && p.isLameduck():
		c.entry = c.duck(false, p.words[0].line, p.words[1:])
		c.entry.whole = true
		if c.entry.asks {
			c.entry = nil
		}
	case c.given && p.behind != "" && c.lameduckVariable() != nil && !hooked: // lameduck under the name of an init, perhaps
		c.entry = c.duck(false, line, append([]word{{"--", line}}, p.words...))
	case !c.given && flagged(c.words):
		c.entry = c.duck(false, line, c.words)
	case !c.given && !hooked && (c.lameduckVariable() != nil || strings.Contains(c.image, "lameduck")):
		c.entry = c.duck(false, line, append([]word{{"--", line}}, c.words...))
	}
}

// duck reads a lameduck's words, and adds lameduck's complaints to the findings.
func (c *container) duck(hook bool, line int, args []word) *duck {
	d := &duck{reading: read(hook, line, args, c.env), line: line}
	d.command = args[len(args)-min(len(args), len(d.cfg.Command)):]
	for _, p := range d.problems {
		c.say(p.line, p.rule, "%s", p.text)
	}
	if d.open {
		return d
	}
	err := d.validate()
	if err != nil {
		c.say(d.lineIn(err), badFlag, "lameduck does not start: %v", err)
		return d
	}
	d.explained, err = explain(d.cfg)
	d.right = err == nil
	return d
}

// lineIn returns the line of the first flag that an error names.
func (d *duck) lineIn(err error) int {
	for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(err.Error(), -1) {
		if d.gave(m[1]) {
			return d.given[m[1]].line
		}
	}
	return d.line
}

// unusedFlags reports flags that lameduck refuses for lack of effect. Variables without
// effect are only warnings of lameduck.
func (c *container) unusedFlags(d *duck) {
	for _, u := range d.CheckUnused(&d.cfg) {
		if strings.HasPrefix(u.Source, "--") {
			c.say(d.given[u.Flag].line, badFlag, "lameduck does not start: %v, or leave it out", u)
		}
	}
}

// lameduckVariable returns the first variable with lameduck's prefix, or nil.
func (c *container) lameduckVariable() *variable {
	for i, v := range c.env {
		if strings.HasPrefix(v.name, cli.Prefix) && !cli.Foreign(v.name) && v.value.text != "" {
			return &c.env[i]
		}
	}
	return nil
}

// unused reports variables for lameduck in a container that does not run lameduck.
func (c *container) unused(others ...[]word) {
	v := c.lameduckVariable()
	if v == nil || c.entry != nil || !c.given || c.program.unclear || mentions(c.words) || slices.ContainsFunc(others, mentions) {
		return
	}
	c.say(v.value.line, unusedVariable, "%s has no effect: this container runs %s without lameduck; put lameduck in front, or remove the variable", v.name, name(c.program.words))
}

// stopsOn reports a stop signal that does not begin a stop.
func (c *container) stopsOn(field, text string, line int) {
	s, err := shim.ParseSignal(text)
	if d := c.entry; err == nil && d != nil && d.right && d.acts && !c.more && !d.begins(s) {
		c.say(line, stopSignal, "%s %v starts no stop: lameduck forwards it unchanged, at once; give --stop-signal=%v (or --rewrite=TERM:%v, a preset that names it), or remove %s",
			field, s, s, s, field)
	}
}

// shells reports a shell in front of the program that should get the signals.
func (c *container) shells(job bool) {
	p := c.program
	if c.given && p.stays(c.image) && (!job || mentions(p.words)) {
		c.say(c.words[0].line, noExec, "%s forwards no signals: %s does not learn of the stop, and is killed; %s", p.front(), p.inside(), p.remedy())
	}
	if d := c.entry; d != nil && d.whole && len(d.command) > 0 && !d.cfg.Group {
		if p := see(d.command); p.stays(c.image) {
			c.say(d.command[0].line, noExec, "%s gets lameduck's signal and does not forward it: %s does not learn of the stop, and is killed; %s, or give --group", p.front(), p.inside(), p.remedy())
		}
	}
}

// flagged reports whether words begin with flags that only lameduck has.
func flagged(words []word) bool {
	own := []string{"--until", "--grace-period", "--quiet-for", "--max-silence", "--wait-gone", "--on-stop", "--stop-schedule", "--ignore-probes"}
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
