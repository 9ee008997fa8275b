package main

import (
	"cmp"
	"errors"
	"fmt"
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
	words   []word        // its words, and the variables as NAME=VALUE
	flags   []cli.Given   // what they give
	unclear bool          // values are unknown
	command []word        // what it runs; nil if it is unclear
	outline *shim.Outline // nil: values are unknown, or contradict each other

	refused []finding // what is left out, and warnings

	right  *shim.Outline // with what is left of the pod's grace period; nil: unknown, or it does not fit
	misfit error         // why it does not fit
}

// ofUntil matches warnings that another --until makes go away.
const ofUntil pattern = `has no effect unless the hold waits`

// inPod is a variable by which lameduck recognizes a pod.
const inPod = "KUBERNETES_SERVICE_HOST=10.0.0.1"

// lameduckIn returns the lameduck that a container or its hook calls, run or hold, or none if the call
// only prints something. outcome is that of a fault. left is of the grace period; 0: unknown.
func (c *container) lameduckIn(call *command, name, outcome string, left time.Duration) lameduck {
	l := lameduck{line: call.program.line, unclear: call.unclear}
	var variables []word
	for _, v := range slices.Backward(c.Env) { // of variables with one name the last counts
		text := v.Name.text + "=" + v.Value.text + v.ValueFrom.text
		variables = append(variables, word{text, cmp.Or(v.Value.line, v.Name.line)})
	}
	l.words = slices.Concat(call.args, variables)
	line, _ := cli.Parse(name, texts(call.args), append(texts(variables), inPod))
	if line.Questions != (cli.Questions{}) {
		return lameduck{}
	}
	l.flags = line.Given()
	refuse := func(err error) {
		var fault *shim.FlagError
		if errors.As(err, &fault) {
			l.refused = append(l.refused, finding{Line: l.lineOf(fault.Flag), Text: outcome + ": " + fault.Error()})
		}
	}
	for _, fault := range line.Faults {
		refuse(fault)
		i := l.indexOf(fault.Flag)
		isWhole := i >= 0 && (strings.Contains(l.words[i].text, "=") || i+1 == len(call.args) || !l.words[i+1].isPlain())
		l.unclear = l.unclear || !isWhole
	}
	for _, u := range line.Unknown {
		text := fmt.Sprintf("%v, which lameduck ignores with a warning: %s", u.Err, u.Remedy)
		l.refused = append(l.refused, finding{Line: l.lineOf(u.Flag), Text: text})
	}
	valid := !c.isOpen() // as far as it is known
	for _, g := range l.flags {
		switch {
		case strings.Contains(g.Text, "$("):
			l.unclear = true
		case g.Err != nil:
			valid = false
			refuse(g.Err)
		}
	}
	l.Config = line.Values()
	if l.unclear {
		return l
	}
	l.command = call.args[len(call.args)-len(l.Command):]
	outline, err := shim.Review(l.Config)
	l.outline = outline
	told, vain := line.Config()
	if valid {
		err = cmp.Or(vain, err)
	}
	refuse(err)
	cfg := line.Values()
	cfg.GracePeriod = 24 * time.Hour
	cfg.Warnings = slices.DeleteFunc(told.Warnings, func(warning string) bool {
		return !valid || l.indexOf("until") < 0 || !ofUntil.matches(warning) // else the image may say more
	})
	judged, err := shim.Review(cfg)
	if left >= time.Second {
		cfg.GracePeriod = left
		cfg.Texts["grace-period"] = fmt.Sprint(left.Seconds())
		l.right, l.misfit = shim.Review(cfg)
		if err != nil { // whatever the grace period
			l.misfit = nil
		}
		judged = l.right
	}
	if judged != nil && l.outline != nil {
		for _, warning := range judged.Warnings {
			l.refused = append(l.refused, finding{Line: l.line, Text: "lameduck warns: " + warning})
		}
	}
	return l
}

// lineOf returns the line of the first word that gives a flag, by the flag's name or as it is
// given, or the line of the lameduck.
func (l *lameduck) lineOf(flag string) int {
	if i := l.indexOf(flag); i >= 0 {
		return l.words[i].line
	}
	return l.line
}

func (l *lameduck) indexOf(flag string) int {
	names := []string{flag, "--" + flag, shim.Variable(flag)}
	for _, g := range l.flags {
		if g.Name == flag {
			names = append(names, "-"+string(g.Short))
		}
	}
	return slices.IndexFunc(l.words, func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return slices.Contains(names, name)
	})
}

// distinctive matches flags that hardly any other program has.
const distinctive pattern = `^--(until|quiet-for|max-silence|max-delay|wait-gone|wait-url|goaway|on-stop|` +
	`stop-schedule|ignore-probes|no-ignore-probes|count-port|ignore-port|ignore-peer|alive-file|health-during|` +
	`parent-death-signal|termination-log)(=|$)`

// beginsWithOurs reports whether words begin with a distinctive flag, with a value that
// lameduck takes. Another program may have a flag of that name.
func beginsWithOurs(words []word) bool {
	if !distinctive.matches(words[0].text) {
		return false
	}
	end := 1
	if len(words) > 1 && words[1].isPlain() {
		end = 2 // a value or a command
	}
	line, err := cli.Parse("run", texts(words[:end]), nil)
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
