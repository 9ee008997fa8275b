package main

import (
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
	args    []word // that lameduck takes
	env     []variable
	command []word        // what it runs
	whole   bool          // the words are the whole command line
	unclear bool          // values are unknown
	cfg     shim.Config   // of what is valid
	outline *shim.Outline // nil: values are unknown, or contradict each other
}

// commandLine is a *cli.Run or a *cli.HoldOnly.
type commandLine interface {
	Values() shim.Config
	Config() (shim.Config, error)
	Given() []cli.Given
}

// parse returns what lameduck makes of its words and variables; asks reports that it prints
// something and runs nothing.
func (l *lameduck) parse() (line commandLine, unknown []cli.Unknown, asks bool, err error) {
	env := []string{inPod}
	for i, v := range l.env {
		if last(l.env, v.name) == &l.env[i] { // of variables with one name the last counts
			env = append(env, v.name+"="+v.value.text)
		}
	}
	var texts []string
	for _, w := range l.args {
		texts = append(texts, w.text)
	}
	if l.hook {
		h, err := cli.ParseHold(texts, env)
		return h, h.Unknown, false, err
	}
	r, err := cli.ParseRun(texts, env)
	return r, r.Unknown, r.Help || r.HelpAll || r.Explain || r.Version, err
}

// inPod is a variable by which lameduck recognizes a pod.
const inPod = "KUBERNETES_SERVICE_HOST=10.0.0.1"

// read returns the lameduck of a container that is called with args at a line, or nil if it
// only prints something. What lameduck refuses is a finding, and left out.
func (c *container) read(hook bool, line int, args []word, unclear bool) *lameduck {
	l := &lameduck{hook: hook, line: line, args: args, env: c.env, unclear: unclear}
	parsed, unknown, asks, err := l.parse()
	for err != nil && c.leaveOut(l, err) {
		parsed, unknown, asks, err = l.parse()
	}
	if asks {
		return nil
	}
	for _, u := range unknown {
		c.report(l.lineOf(u.Name), badFlag,
			"unknown variable %s, which lameduck ignores with a warning: %s", u.Name, u.Hint)
	}
	valid := true
	for _, g := range parsed.Given() {
		if !known(g.Text) {
			l.unclear = true
		} else if g.Err != nil && !ofBuild(g.Err) {
			valid = false
			c.report(l.lineOf(g.Source+" "+g.Short), badFlag, "%s: %s=%s: %v", l.outcome(), g.Source, g.Text, g.Err)
		}
	}
	l.cfg = parsed.Values()
	l.cfg.Env = []string{inPod} // only for the defaults of a pod
	l.command = l.args[len(l.args)-min(len(l.args), len(l.cfg.Command)):]
	if l.unclear {
		return l
	}
	if valid && !c.more {
		_, err = parsed.Config()
	}
	if outline, contradiction := shim.NewOutline(l.cfg); contradiction == nil {
		l.outline = outline
	} else if err == nil {
		err = contradiction
	}
	if err != nil && !ofBuild(err) {
		c.report(l.lineOf(err.Error()), badFlag, "%s: %v", l.outcome(), err)
	}
	return l
}

// leaveOut reports the word that an error of the parser names, and leaves the word out. It
// returns false if there is no such word.
func (c *container) leaveOut(l *lameduck, err error) bool {
	if without := errors.Unwrap(err); without != nil {
		err = without // the hint at the end names lameduck's help
	}
	c.report(l.lineOf(err.Error()), badFlag, "%s: %v", l.outcome(), err)
	i := indexOf(namesRE.FindString(err.Error()), l.args)
	if i < 0 {
		l.unclear = true
		return false
	}
	mayBeValue := i+1 < len(l.args) && !strings.HasPrefix(l.args[i+1].text, "-")
	l.unclear = l.unclear || mayBeValue && flagOf(l.args[i]) == l.args[i].text
	l.args = slices.Delete(slices.Clone(l.args), i, i+1)
	return true
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

// namesRE matches the name of a flag or of a variable.
var namesRE = regexp.MustCompile(`-[\w-]+|` + cli.Prefix + `\w+`)

// lineOf returns the line of the first flag or variable that a text names and that is given,
// or the line of the lameduck.
func (l *lameduck) lineOf(text string) int {
	for _, name := range namesRE.FindAllString(text, -1) {
		if i := indexOf(name, l.args); i >= 0 {
			return l.args[i].line
		}
		if flag, isFlag := strings.CutPrefix(name, "--"); isFlag {
			name = cli.Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
		}
		if v := last(l.env, name); v != nil {
			return v.value.line
		}
	}
	return l.line
}

// indexOf returns the index of the first word that is the flag or its negation, or -1.
func indexOf(flag string, args []word) int {
	return slices.IndexFunc(args, func(a word) bool {
		name := flagOf(a)
		short := len(flag) == 2 && strings.HasPrefix(a.text, flag)
		return flag != "" && (short || name == flag || name == "--no"+strings.TrimPrefix(flag, "-"))
	})
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
