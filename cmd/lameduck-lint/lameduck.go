package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// lameduck is what a lameduck in a container, the entrypoint or a hook, makes of its words
// and variables.
type lameduck struct {
	shim.Config // of what is valid

	Of      string        // entry or hold
	Call    *command      // nil: there is none
	Works   bool          // it runs a command or holds
	words   []word        // of the call, and the variables as NAME=VALUE
	Flags   []cli.Given   // what they give
	Unclear bool          // values are unknown
	command []word        // what it runs; nil if it is unclear
	Plan    *shim.Plan    // nil: values are unknown, or contradict each other
	longest time.Duration // of the holds
	refused []finding     // what is left out, and warnings

	Right *shim.Plan    // with what is left of the pod's grace period; nil: it does not fit
	Needs time.Duration // the shortest grace period that fits; 0: unknown, or what is left fits
}

// ofUntil matches warnings that another --until makes go away.
const ofUntil pattern = `has no effect unless the hold waits`

// newLameduck returns the lameduck of a call by a container or its hook, for which the subcommand is hold.
func (s *stop) newLameduck(call *command, subcommand, outcome string) (l lameduck) {
	l.Of, l.Call = cmp.Or(subcommand, "entry"), call
	if call == nil || call.Subcommand != "" && call.Subcommand != subcommand {
		return l
	}
	var variables []word
	for _, v := range slices.Backward(s.Env) { // of variables with one name the last counts
		text := v.Name.text + "=" + v.Value.text + v.ValueFrom.text
		variables = append(variables, word{text, cmp.Or(v.Value.line, v.Name.line)})
	}
	l.words = slices.Concat(call.args, variables)
	line, _ := cli.Parse(cmp.Or(subcommand, "run"), texts(call.args), append(texts(variables), s.Platform["variable"]))
	if line.Questions != (cli.Questions{}) {
		return l
	}
	l.Config, l.Flags, l.Works = line.Values(), line.Given, true
	l.Unclear = call.unclear
	refuse := func(err error) {
		var fault *shim.FlagError
		if errors.As(err, &fault) {
			l.refuse(l.lineOf(fault.Flag), "%s: %v", outcome, fault)
		}
	}
	for _, fault := range line.Faults {
		refuse(fault)
		i := l.indexOf(fault.Flag)
		l.Unclear = l.Unclear || i < 0 || !strings.Contains(l.words[i].text, "=") // what follows may be its value
	}
	for _, u := range line.Unknown {
		l.refuse(l.lineOf(u.Flag), "%v, which lameduck ignores with a warning: %s", u.Err, u.Remedy)
	}
	valid := !s.IsOpen() // as far as it is known
	for _, g := range l.Flags {
		if strings.Contains(g.Text, "$(") {
			l.Unclear = true
		} else if g.Err != nil {
			valid = false
			refuse(g.Err)
		}
	}
	if l.Unclear {
		return l
	}
	l.command = call.args[len(call.args)-len(l.Command):]
	for i, w := range l.command {
		if w.text == "--" || callIn(s.commandsIn(l.command)) != nil {
			break
		}
		if ours.matches(joined(l.command[i:])) {
			l.refused = append(l.refused, finding{Rule: "misplaced-flag", Line: w.line, Text: w.text})
		}
	}
	told, vain := line.Config()
	plan, err := shim.Review(l.Config)
	if l.Plan = plan; valid {
		err = cmp.Or(vain, err)
	}
	refuse(err)
	if plan != nil {
		l.longest = plan.Stop.Gate.MaxHold()
	}
	l.Warnings = slices.DeleteFunc(told.Warnings, func(warning string) bool {
		return !valid || l.indexOf("until") < 0 || !ofUntil.matches(warning) // else the image may say more
	})
	l.fit(s.left)
	if l.Plan != nil && l.Right != nil {
		for _, warning := range l.Right.Warnings {
			l.refuse(call.Program.line, "lameduck warns: %s", warning)
		}
	}
	return l
}

// refuse notes what is wrong.
func (l *lameduck) refuse(line int, format string, args ...any) {
	l.refused = append(l.refused, finding{Rule: "bad-flag", Line: line, Text: fmt.Sprintf(format, args...)})
}

// fit sees whether the configuration fits into what is left of the pod's grace period, or else what it needs.
func (l *lameduck) fit(left time.Duration) {
	const day = 24 * 60 * 60
	cfg := l.Config
	review := func(grace time.Duration) *shim.Plan {
		cfg.GracePeriod = grace
		plan, _ := shim.Review(cfg)
		return plan
	}
	if left < time.Second {
		left = day * time.Second
	}
	if l.Right = review(left); l.Right != nil {
		return
	}
	seconds := sort.Search(day, func(n int) bool { return review(time.Duration(n+1)*time.Second) != nil })
	if seconds < day { // else it fits nowhere
		l.Needs = time.Duration(seconds+1) * time.Second
	}
}

// lineOf returns the line of the first word that gives a flag, by the flag's name or as it is
// given, or the line of the lameduck.
func (l *lameduck) lineOf(flag string) int {
	if i := l.indexOf(flag); i >= 0 {
		return l.words[i].line
	}
	return l.Call.Program.line
}

func (l *lameduck) indexOf(flag string) int {
	names := []string{flag, "--" + flag, shim.Variable(flag)}
	return slices.IndexFunc(l.words, func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return slices.Contains(names, name)
	})
}
