package main

import (
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

// reportCommand reports a command of lameduck that is a lameduck too, or gets lameduck's flags.
func (c *container) reportCommand() {
	d := c.entry
	if d == nil || !d.starts {
		return
	}
	switch p := programOf(d.command); {
	case p.isLameduck():
		c.reportNested(d, p)
	case len(p.words) > 0 && !isShell(d.command[0].text):
		c.reportMisplaced(p.words)
	}
}

// reportNested reports a lameduck in the command of lameduck. The inner lameduck does not get
// the variables.
func (c *container) reportNested(d *instance, p program) {
	line := p.words[0].line
	inside := &container{complete: true}
	inner := inside.newInstance(false, line, p.words[1:])
	c.found = append(c.found, inside.found...)
	if d.cfg.Holds() && inner.starts && inner.cfg.Holds() {
		c.report(line, nested, "lameduck runs another lameduck, and both hold, one after the other: they add up; leave one of them out")
		return
	}
	c.report(line, nested, "lameduck runs another lameduck, which is of no use; leave one of them out")
}

// distinctive are flags that hardly any other program has.
var distinctive = []string{
	"--until", "--quiet-for", "--max-silence", "--max-delay", "--wait-gone", "--on-stop", "--stop-schedule", "--ignore-probes", "--no-ignore-probes",
	"--count-port", "--ignore-port", "--ignore-peer", "--alive-file", "--health-during", "--parent-death-signal", "--termination-log",
}

// reportMisplaced reports flags of lameduck among the arguments of the command. Another program
// may have a flag of that name: only values that lameduck takes are reported.
func (c *container) reportMisplaced(command []word) {
	for i, w := range command[1:] {
		flag, _, inWord := strings.Cut(w.text, "=")
		switch {
		case w.text == "--":
			return
		case !slices.Contains(distinctive, flag):
			continue
		}
		texts := []string{w.text}
		if next := i + 2; !inWord && next < len(command) && !strings.HasPrefix(command[next].text, "-") {
			texts = append(texts, command[next].text)
		}
		if accepted(texts) {
			c.report(w.line, misplacedFlag, "%s comes after the command, so %s gets the flag, and lameduck does not: put the flag before %[2]s, unless %[2]s has a flag of that name", w.text, name(command))
		}
	}
}

// accepted reports whether lameduck takes texts as a flag with a valid value.
func accepted(texts []string) bool {
	line, err := cli.ParseRun(texts, nil)
	return err == nil && !slices.ContainsFunc(line.Given(), func(g cli.Given) bool { return g.Err != nil })
}
