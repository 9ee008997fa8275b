package main

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// variable is an environment variable in a file.
type variable struct {
	name  string
	value word
}

// lameduck is a lameduck in a container, the entrypoint or a hook, and what its words and
// variables ask for.
type lameduck struct {
	hook    bool
	line    int
	init    string         // the init in front
	whole   bool           // the words are the whole command line
	command []word         // what it runs
	cfg     shim.Config    // of what is valid
	outline *shim.Outline  // nil: values are unknown, or contradict each other
	unclear bool           // values are unknown
	given   map[string]int // the line of each flag that was given, or of its variable
}

// commandLine is a *cli.Run or a *cli.HoldOnly.
type commandLine interface {
	Values() shim.Config
	Given() []cli.Given
	CheckUnused(*shim.Config) []cli.Unused
}

// parse returns what lameduck, or lameduck hold, makes of words and variables; asks reports
// that it prints something and runs nothing.
func parse(hook bool, texts, env []string) (line commandLine, unknown []cli.Unknown, asks bool, err error) {
	if hook {
		l, err := cli.ParseHold(texts, env)
		return l, l.Unknown, false, err
	}
	l, err := cli.ParseRun(texts, env)
	return l, l.Unknown, l.Help.Value || l.HelpAll.Value || l.Explain.Value || l.Version.Value, err
}

// read returns the lameduck of a container that is called with args at a line, or nil if it
// only prints something. What lameduck refuses is a finding, and left out.
func (c *container) read(hook bool, line int, args []word, unclear bool) *lameduck {
	l := &lameduck{hook: hook, line: line, unclear: unclear, given: map[string]int{}}
	env := environ(c.env)
	parsed, unknown, asks, err := parse(hook, texts(args), env)
	for ; err != nil; parsed, unknown, asks, err = parse(hook, texts(args), env) {
		at := indexOf(regexp.MustCompile(`--?[\w-]+`).FindString(err.Error()), args)
		if without := errors.Unwrap(err); without != nil {
			err = without // the hint at the end names lameduck's help
		}
		if at < 0 {
			l.unclear = true
			c.report(line, badFlag, "%s: %v", l.outcome(), err)
			break
		}
		c.report(args[at].line, badFlag, "%s: %v", l.outcome(), err)
		mayBeValue := at+1 < len(args) && !strings.HasPrefix(args[at+1].text, "-")
		l.unclear = l.unclear || mayBeValue && flagOf(args[at]) == args[at].text
		args = slices.Delete(slices.Clone(args), at, at+1)
	}
	if asks {
		return nil
	}
	for _, u := range unknown {
		c.report(last(c.env, u.Name).value.line, badFlag, "unknown variable %s, which lameduck ignores with a warning: %s", u.Name, u.Hint)
	}
	for _, g := range parsed.Given() {
		at := line
		if i := max(indexOf(g.Source, args), indexOf(g.Short, args)); i >= 0 {
			at = args[i].line
		} else if v := last(c.env, g.Source); v != nil {
			at = v.value.line
		}
		l.given[g.Flag] = at
		l.unclear = l.unclear || !known(g.Text)
		if known(g.Text) && g.Err != nil && !ofBuild(g.Err) {
			c.report(at, badFlag, "%s: %s=%s: %v", l.outcome(), g.Source, g.Text, g.Err)
		}
	}
	l.cfg = parsed.Values()
	l.cfg.Env = []string{inPod} // only for the defaults of a pod
	l.command = args[len(args)-min(len(args), len(l.cfg.Command)):]
	c.plan(l, parsed)
	return l
}

// plan makes the outline, and reports contradictions.
func (c *container) plan(l *lameduck, parsed commandLine) {
	if l.unclear {
		return
	}
	for _, u := range parsed.CheckUnused(&l.cfg) {
		if u.Refused() && !c.more {
			c.report(l.lineOf(u.Flag), badFlag, "%s: %v, or leave it out", l.outcome(), u)
		}
	}
	outline, err := shim.NewOutline(l.cfg)
	switch {
	case err == nil:
		l.outline = outline
	case !ofBuild(err):
		line := l.line
		for _, m := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(err.Error(), -1) {
			if at, ok := l.given[m[1]]; ok {
				line = at
				break
			}
		}
		c.report(line, badFlag, "%s: %v", l.outcome(), err)
	}
}

// outcome returns what becomes of a lameduck with a wrong flag or variable.
func (l *lameduck) outcome() string {
	if l.hook {
		return "lameduck hold holds with the defaults, and fails"
	}
	return "lameduck does not start"
}

// holds reports whether the lameduck holds, as far as the file tells.
func (l *lameduck) holds() bool { return l != nil && l.cfg.Holds() }

// lineOf returns the line of a flag, or of the lameduck.
func (l *lameduck) lineOf(flag string) int { return cmp.Or(l.given[flag], l.line) }

// inPod is a variable by which lameduck recognizes a pod.
const inPod = "KUBERNETES_SERVICE_HOST=10.0.0.1"

// environ returns the environment that a container's variables make. Of variables with the
// same name the last one counts.
func environ(env []variable) []string {
	list := []string{inPod}
	for i, v := range env {
		if last(env[i+1:], v.name) == nil {
			list = append(list, v.name+"="+v.value.text)
		}
	}
	return list
}

// last returns the last variable of a name, or nil.
func last(env []variable, name string) *variable {
	for i := len(env) - 1; i >= 0; i-- {
		if env[i].name == name {
			return &env[i]
		}
	}
	return nil
}

// ofBuild reports whether an error is about the build of this very program: the linter is
// built without the flags by which lameduck catches all signals.
func ofBuild(err error) bool { return strings.Contains(err.Error(), "this binary was built without") }

func texts(words []word) (list []string) {
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}

// indexOf returns the index of the first word that is the flag or its negation, or -1.
func indexOf(flag string, args []word) int {
	return slices.IndexFunc(args, func(a word) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return flag != "" && (name == flag || name == "--no"+strings.TrimPrefix(flag, "-") || len(flag) == 2 && strings.HasPrefix(a.text, flag))
	})
}
