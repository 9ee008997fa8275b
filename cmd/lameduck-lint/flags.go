package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// word is a word of a file, and its line. What only the cluster or the build knows is
// written $(NAME) in the text, as in Kubernetes.
type word struct {
	text string
	line int
}

// known reports whether text has no $(NAME).
func known(text string) bool { return !strings.Contains(text, "$(") }

// commandLine is a *cli.Line.
type commandLine interface {
	Values() shim.Config
	Given() []cli.Given
	CheckUnused(*shim.Config) []cli.Unused
}

// reading is what lameduck makes of arguments and variables.
type reading struct {
	commandLine
	hook     bool
	cfg      shim.Config
	given    map[string]given // by the flag's name
	open     bool             // some argument or variable is not known
	asks     bool             // lameduck prints something, and runs nothing
	problems []problem
}

// given is the last value of a flag or of its variable.
type given struct {
	source, value string
	line          int
}

// problem is a complaint of lameduck.
type problem struct {
	line int
	rule string
	text string
}

func (r *reading) complain(line int, rule, format string, args ...any) {
	r.problems = append(r.problems, problem{line, rule, fmt.Sprintf(format, args...)})
}

// read returns what lameduck, or lameduck hold, makes of the words after the name (at
// line) and of the variables.
func read(hook bool, line int, args []word, env []variable) *reading {
	r := &reading{hook: hook, given: map[string]given{}}
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	if hook {
		l, err := cli.ParseHold(texts, environ(env))
		r.commandLine = l
		r.check(err, l.Unknown, line, args, env)
	} else {
		l, err := cli.ParseRun(texts, environ(env))
		r.commandLine = l
		r.asks = l.Help || l.HelpAll || l.Explain || l.Version
		r.check(err, l.Unknown, line, args, env)
	}
	r.cfg = r.Values()
	r.cfg.Env = []string{inPod} // only for the defaults of a pod
	r.setGiven(args, line, env)
	return r
}

// outcome returns what becomes of a lameduck with a wrong flag or variable.
func (r *reading) outcome() string {
	if r.hook {
		return "lameduck hold holds with the defaults, and fails"
	}
	return "lameduck does not start"
}

// inPod is a variable by which lameduck recognizes a pod.
const inPod = "KUBERNETES_SERVICE_HOST=10.0.0.1"

// environ returns the environment that a container's variables make. Of variables with the
// same name the last one counts.
func environ(env []variable) []string {
	list := []string{inPod}
	for i, v := range env {
		if !slices.ContainsFunc(env[i+1:], func(later variable) bool { return later.name == v.name }) {
			list = append(list, v.name+"="+v.value.text)
		}
	}
	return list
}

// check notes an error about the flags, and variables that lameduck does not know.
func (r *reading) check(err error, unknown []cli.Unknown, line int, args []word, env []variable) {
	if err != nil {
		if without := errors.Unwrap(err); without != nil {
			err = without // the hint at the end names lameduck's help
		}
		r.complain(lineOf(regexp.MustCompile(`--?[\w-]+`).FindString(err.Error()), args, line), badFlag, "%s: %v", r.outcome(), err)
		r.open = true
	}
	for _, u := range unknown {
		r.complain(last(env, u.Name).value.line, unknownVariable, "unknown variable %s, which lameduck ignores with a warning: %s", u.Name, u.Hint)
	}
}

// setGiven notes the values, and complaints about invalid values.
func (r *reading) setGiven(args []word, line int, env []variable) {
	for _, g := range r.Given() {
		at := lineOf(g.Source, args, lineOf(g.Short, args, line))
		if v := last(env, g.Source); v != nil {
			at = v.value.line
		}
		r.given[g.Flag] = given{g.Source, g.Text, at}
		if !known(g.Text) {
			r.open = true
		} else if g.Err != nil && !ofBuild(g.Err) {
			r.complain(at, badFlag, "%s: %s=%s: %v", r.outcome(), g.Source, g.Text, g.Err)
			r.open = true
		}
	}
}

// gave reports whether a flag was given, or its variable.
func (r *reading) gave(flag string) bool {
	_, ok := r.given[flag]
	return ok
}

// validate returns lameduck's error about the configuration as a whole.
func (r *reading) validate() error {
	err := r.cfg.Validate()
	if err != nil && !ofBuild(err) {
		return err
	}
	return nil
}

// ofBuild reports whether an error is about the build of this very program: the linter is
// built without the flags by which lameduck catches all signals.
func ofBuild(err error) bool { return strings.Contains(err.Error(), "this binary was built without") }

// lineOf returns the line of the first word that is the flag or its negation, or else
// otherwise.
func lineOf(flag string, args []word, otherwise int) int {
	i := slices.IndexFunc(args, func(a word) bool {
		name, _, _ := strings.Cut(a.text, "=")
		return flag != "" && (name == flag || name == "--no"+strings.TrimPrefix(flag, "-") || len(flag) == 2 && strings.HasPrefix(a.text, flag))
	})
	if i < 0 {
		return otherwise
	}
	return args[i].line
}
