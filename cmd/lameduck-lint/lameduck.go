package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// lameduck is what a lameduck in a container, the entrypoint or a hook, makes of its words
// and variables.
type lameduck struct {
	shim.Config // of what is valid

	line    int           // 0: there is none
	given   []word        // its words, and the variables as NAME=VALUE
	unclear bool          // values are unknown
	command []word        // what it runs; nil if it is unclear
	outline *shim.Outline // nil: values are unknown, or contradict each other

	right  *shim.Outline // with what is left of the pod's grace period; nil: unknown, or it does not fit
	misfit error         // why it does not fit
}

// inPod is a variable by which lameduck recognizes a pod.
const inPod = "KUBERNETES_SERVICE_HOST=10.0.0.1"

// read returns the lameduck that a container or its hook calls, or none if the call only prints
// something. What lameduck refuses is left out, and noted in c.refused.
func (c *container) read(call *command) lameduck {
	l := lameduck{line: call.program.line, unclear: call.unclear}
	parse, outcome := cli.ParseRun, "lameduck does not start"
	if call == c.hookCall {
		parse, outcome = cli.ParseHold, "lameduck hold holds with the defaults, and fails"
	}
	var variables []word
	for _, v := range slices.Backward(c.Env) { // of variables with one name the last counts
		text := v.Name.text + "=" + v.Value.text + v.ValueFrom.text
		variables = append(variables, word{text, cmp.Or(v.Value.line, v.Name.line)})
	}
	l.given = slices.Concat(call.args, variables)
	env := append(texts(variables), inPod)
	refuse := func(about, format string, args ...any) {
		c.refused = append(c.refused, finding{Line: l.lineOf(about), Text: fmt.Sprintf(format, args...)})
	}
	args := call.args
	line, err := parse(texts(args), env)
	for ; err != nil; line, err = parse(texts(args), env) {
		err = cmp.Or(errors.Unwrap(err), err) // without the hint at the end, which names lameduck's help
		refuse(err.Error(), "%s: %v", outcome, err)
		i := indexOf(namesRE.FindString(err.Error()), args)
		if i < 0 {
			l.unclear = true
			break
		}
		mayBeValue := i+1 < len(args) && args[i+1].isPlain()
		l.unclear = l.unclear || mayBeValue && !strings.Contains(args[i].text, "=")
		args = slices.Concat(args[:i], args[i+1:])
	}
	if line.Questions != (cli.Questions{}) {
		return lameduck{}
	}
	for _, u := range line.Unknown {
		refuse(u.Name, "unknown variable %s, which lameduck ignores with a warning: %s", u.Name, u.Hint)
	}
	valid := !c.more // as far as it is known
	for _, g := range line.Given() {
		switch {
		case strings.Contains(g.Text, "$("):
			l.unclear = true
		case g.Err != nil:
			valid = false
			refuse(g.Source+" -"+string(g.Short), "%s: %v: %v", outcome, g, g.Err)
		}
	}
	l.Config = line.Values()
	if l.unclear {
		return l
	}
	l.command = args[len(args)-len(l.Command):]
	l.outline, err = shim.NewOutline(l.Config)
	if _, unused := line.Config(); valid {
		err = cmp.Or(unused, err)
	}
	if err != nil {
		refuse(err.Error(), "%s: %v", outcome, err)
	}
	if c.left >= time.Second {
		cfg := line.Values()
		cfg.GracePeriod = c.left
		cfg.Texts["grace-period"] = fmt.Sprint(c.left.Seconds())
		l.right, l.misfit = shim.NewOutline(cfg)
	}
	return l
}

// namesRE matches the name of a flag or of a variable.
var namesRE = regexp.MustCompile(`-[\w-]+|` + cli.Prefix + `\w+`)

// lineOf returns the line of the first flag or variable that a text names and that is given,
// or the line of the lameduck.
func (l *lameduck) lineOf(text string) int {
	for _, name := range namesRE.FindAllString(text, -1) {
		if i := indexOf(name, l.given); i >= 0 {
			return l.given[i].line
		}
	}
	return l.line
}

// indexOf returns the index of the first word that gives a flag or a variable, or -1.
func indexOf(name string, given []word) int {
	return slices.IndexFunc(given, func(w word) bool { return origin(w.text) == origin(name) })
}

// origin returns the flag that a word or the flag's variable gives.
func origin(text string) string {
	name, _, _ := strings.Cut(text, "=")
	if variable, ok := strings.CutPrefix(name, cli.Prefix); ok {
		return "--" + strings.ToLower(strings.ReplaceAll(variable, "_", "-"))
	}
	return name
}
