package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// HookAnyway returns the configuration of a preStop hook whose arguments or variables are
// wrong: the configuration without the wrong flags, variables and words, and an error for
// each of these. A hook that refuses to hold because of a typo loses requests at every stop,
// and Kubernetes discards the output of a hook.
//
// Settings are tried one by one, the grace period first, then the delay, then the others,
// flags before variables. A setting that is invalid, or contradicts the settings before, is
// left out. A hook that is turned off, by LAMEDUCK_UNTIL=elapsed and no delay, stays off, and
// the flags without effect are right.
func HookAnyway(args, env []string) (cfg shim.Config, wrong []error) {
	settings, call := settingsOf(args, env)
	cfg, _ = call.config() // valid: no flag is given
	asksToHold := false
	for _, s := range settings {
		next := call.with(s)
		tried, err := next.config()
		if err := cmp.Or(s.err, err); err != nil {
			wrong = append(wrong, leftOut(err, s.name))
			asksToHold = asksToHold || slices.Contains(holds, s.name)
			continue
		}
		call, cfg = next, tried
	}
	if asksToHold && !cfg.Holds() { // --until=elapsed, whose --delay is wrong
		cfg, _ = call.with(setting{words: []string{"--until=quiet"}}).config()
	}
	return cfg, wrong
}

// holds lists the flags that ask for a hold, beside --until.
var holds = []string{"--delay", "-d", "LAMEDUCK_DELAY", "--wait-gone", "LAMEDUCK_WAIT_GONE", "--on-stop", "LAMEDUCK_ON_STOP"}

// leftOut adds to an error that the hook holds without a setting.
func leftOut(err error, name string) error {
	separator := "; "
	if strings.HasSuffix(err.Error(), "?") {
		separator = " "
	}
	return fmt.Errorf("%w%sholding without %s", err, separator, quoteWord(name))
}

// setting is a flag, with its value, or a variable, or a word that belongs to neither.
type setting struct {
	name  string
	words []string // on the command line
	entry string   // in the environment
	err   error
}

// hookCall is a command line and an environment.
type hookCall struct{ args, env []string }

func (c hookCall) with(s setting) hookCall {
	c.args = slices.Concat(c.args, s.words)
	if s.entry != "" {
		c.env = append(slices.Clone(c.env), s.entry)
	}
	return c
}

// config returns the configuration of the call, or the first error. Where no hold is asked
// for, flags without effect are not errors.
func (c hookCall) config() (shim.Config, error) {
	var h HoldOnly
	if _, err := h.parse(&h, c.args, c.env, flagsOf(new(Run))); err != nil {
		return shim.Config{}, lacking(err, "hold")
	}
	cfg, err := h.Config()
	isWrong := func(g Given) bool { return g.Err != nil }
	if err != nil && (cfg.Holds() || slices.ContainsFunc(h.Given(), isWrong)) {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// settingsOf returns the settings in args and env, in the order of trying, and the call
// without the settings.
func settingsOf(args, env []string) (settings []setting, rest hookCall) {
	flags := flagsOf(new(HoldOnly))
	settings = argumentsOf(args, flags)
	vars := readEnv(env, flags, flagsOf(new(Run)))
	for _, name := range slices.Sorted(maps.Keys(vars.values)) {
		settings = append(settings, setting{name: name, entry: name + "=" + vars.values[name]})
	}
	return firstThese(settings), hookCall{env: vars.rest}
}

// argumentsOf returns the settings on a command line. The word after an unknown flag
// without "=" is taken for the flag's value.
func argumentsOf(args []string, flags []flag) (list []setting) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--":
			continue
		case !isFlag(word):
			list = append(list, setting{name: word, err: unexpectedArgument(word)})
			continue
		}
		s := setting{name: flagName(word, flags), words: []string{word}}
		valueFollows, err := readWord(word, flags)
		if err != nil {
			valueFollows = !strings.Contains(word, "=")
		}
		if valueFollows && i+1 < len(args) && (!isFlag(args[i+1]) || isNegative(args[i+1])) {
			i++
			s.words = append(s.words, args[i])
		}
		list = append(list, s)
	}
	return list
}

// flagName returns the flag in a word of a command line: of a short flag the flag without its
// value, or the whole word if the first flag of a cluster takes no value or does not exist.
func flagName(word string, flags []flag) string {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return name
	}
	if f := short(flags, word[1:2]); f != nil && f.hasValue {
		return word[:2]
	}
	return word
}

// firstThese returns settings with the grace period first, and then the delay: other
// settings have to fit.
func firstThese(settings []setting) (ordered []setting) {
	for _, name := range []string{"--grace-period", "LAMEDUCK_GRACE_PERIOD", "--delay", "-d", "LAMEDUCK_DELAY"} {
		for i := range settings {
			if settings[i].name == name {
				ordered = append(ordered, settings[i])
			}
		}
		settings = slices.DeleteFunc(settings, func(s setting) bool { return s.name == name })
	}
	return append(ordered, settings...)
}
