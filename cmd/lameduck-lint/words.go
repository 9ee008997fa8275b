package main

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
)

func holdTwice(c *container, report reporter) {
	if c.hold.Holds() && c.entry.Holds() {
		report(c.hold.line,
			"the entrypoint is a lameduck that holds by itself: lameduck hold returns at once, or the holds add up "+
				"where the entrypoint is not PID 1; leave one of them out")
	}
	if inner := callIn(c.entry.command); inner != nil {
		report(inner.program.line,
			"lameduck runs another lameduck, which is of no use, or adds a hold to the hold; leave one of them out")
	}
}

func sayHold(c *container, report reporter) {
	if call := c.hookCall; call != nil && call.subcommand == "" {
		report(call.program.line, "a preStop hook without the word hold: say lameduck hold")
	}
}

// noCommand: an image from scratch is for copying, and needs no command.
func noCommand(c *container, report reporter) {
	remedy := "the pod's command replaces that of the image: add that one"
	if c.pod == nil {
		remedy = "ENTRYPOINT clears the CMD of " + c.Image +
			", and in shell form gets none: repeat the CMD after an ENTRYPOINT in brackets, or give a command " +
			"in the pod"
	}
	switch {
	case c.call != nil && c.call.subcommand == "hold" && c.call.shell == "":
		report(c.call.program.line,
			"the container runs lameduck hold, which runs no command and ends after a hold; leave out hold and give "+
				"the command, or make it the preStop hook")
	case c.entry.line > 0 && c.Command != nil && !c.entry.unclear && len(c.entry.command) == 0 && c.Image != "scratch":
		report(c.entry.line, "lameduck does not start: no command to run: %s", remedy)
	}
}

// noProgram reports a command line in one word, and a lameduck at a path to which nothing
// brings one: a volume that the container does not mount, an empty volume that nothing fills,
// or a library image. An image of another repository may have a lameduck at any path.
func noProgram(c *container, report reporter) {
	check := func(words []word, outcome string) {
		if len(words) > 0 && lineRE.MatchString(words[0].text) {
			report(words[0].line, "no shell splits %q into words, so %s; make each word an item of its own",
				words[0].text, outcome)
		}
		call := callIn(words)
		switch {
		case call == nil:
		case c.isFolder(call.program.text):
			report(call.program.line, "%s is the folder of a volume, so %s; write %[1]s/lameduck", call.program.text, outcome)
		case c.isMissing(call.program.text):
			report(call.program.line,
				"%s is missing: no init container or volume provides it, so %s; mount the volume that "+
					"has it (see docs/install.md)", call.program.text, outcome)
		}
	}
	check(c.words, "the container does not start")
	check(c.hook, "the hook fails, and nothing holds")
}

// lineRE matches a call of lameduck that is one word.
var lineRE = regexp.MustCompile(`^(\S*/)?lameduck\s`)

// libraryRE matches images of Docker's library, none of which has a lameduck.
var libraryRE = regexp.MustCompile(`^(docker\.io/library/)?(caddy|haproxy|httpd|memcached|mongo|mysql|mariadb|nginx|` +
	`node|php|postgres|python|rabbitmq|redis|ruby|tomcat|traefik|varnish)(:|$)`)

// isMissing reports whether nothing brings a program to the container.
func (c *container) isMissing(program string) bool {
	if c.pod == nil || c.Image == "" || !path.IsAbs(program) {
		return false
	}
	file := path.Clean(program)
	if volume := c.volumeAt(file); volume != "" {
		return c.pod.isEmpty(volume)
	}
	brings := func(init container) bool { return init.volumeAt(file) != "" }
	return slices.ContainsFunc(c.pod.InitContainers, brings) || libraryRE.MatchString(c.Image)
}

// isFolder reports whether a volume of folders is mounted at the very path of a program.
func (c *container) isFolder(program string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m volume) bool {
		isOf := func(v volume) bool { return v.Name == m.Name && (v.EmptyDir != nil || v.Image != nil) }
		return path.Clean(m.MountPath) == path.Clean(program) && m.SubPath == "" &&
			c.pod != nil && slices.ContainsFunc(c.pod.Volumes, isOf)
	})
}

// volumeAt returns the volume that a container mounts at a path or above, or "".
func (c *container) volumeAt(file string) string {
	for dir := file; len(dir) > 1; dir = path.Dir(dir) {
		for _, m := range c.VolumeMounts {
			if path.Clean(m.MountPath) == dir {
				return m.Name
			}
		}
	}
	return ""
}

// distinctiveRE matches flags that hardly any other program has.
var distinctiveRE = regexp.MustCompile(`^--(until|quiet-for|max-silence|max-delay|wait-gone|on-stop|stop-schedule|` +
	`ignore-probes|no-ignore-probes|count-port|ignore-port|ignore-peer|alive-file|health-during|parent-death-signal|` +
	`termination-log)(=|$)`)

// beginsWithOurs reports whether words begin with a distinctive flag, with a value that
// lameduck takes. Another program may have a flag of that name.
func beginsWithOurs(words []word) bool {
	if !distinctiveRE.MatchString(words[0].text) {
		return false
	}
	end := 1
	if len(words) > 1 && words[1].isPlain() {
		end = 2 // a value or a command
	}
	line, err := cli.ParseRun(texts(words[:end]), nil)
	return err == nil && !slices.ContainsFunc(line.Given(), func(g cli.Given) bool { return g.Err != nil })
}

// startsWithFlag reports whether the words are flags, of which only lameduck has one, and a
// command.
func startsWithFlag(words []word) bool {
	for i, w := range words {
		switch {
		case w.isPlain():
			return false
		case strings.HasPrefix(w.text, "--grace-period") || beginsWithOurs(words[i:]):
			return slices.ContainsFunc(words, word.isPlain)
		}
	}
	return false
}

func misplacedFlag(c *container, report reporter) {
	program := c.entry.command
	for i, w := range program {
		if w.text == "--" || callIn(program) != nil {
			return
		}
		if i > 0 && beginsWithOurs(program[i:]) {
			report(w.line,
				"%s comes after the command, so %s gets the flag, and lameduck does not: put the flag before %[2]s, "+
					"unless %[2]s has a flag of that name", w.text, program[0].text)
		}
	}
}

func badFlag(c *container, report reporter) {
	for _, f := range c.refused {
		report(f.Line, "%s", f.Text)
	}
}
