package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// hold is lameduck as a preStop hook. A hook with a fault holds without what is wrong, and then
// fails: the kubelet reports a failed hook as an event (FailedPreStopHook), and stops the
// container as usual. A hook that refuses to hold because of a typo would lose requests at
// every stop. The warnings are the caller's.
func hold(args, env []string, warnings ...string) int {
	line, err := cli.Parse("hold", args, env)
	if err == nil && line.Help { // whatever the values are
		return answer(line.HelpText())
	}
	cfg, faults := line.Tolerant()
	switch {
	case len(faults) > 0 && !isHook(line):
		err = cmp.Or[error](err, faults[0])
		return failIn(cfg.JSON, fmt.Errorf("%w; a preStop hook would hold without it, and fail", err))
	case line.Explain:
		return explain(cfg, true)
	}
	cfg.Warnings = append(cfg.Warnings, warnings...)
	useless := ""
	switch holds, because := entrypointHolds(); {
	case holds:
		useless = "PID 1 is or runs a lameduck that holds by itself" + because + "; nothing to do"
	case !cfg.Holds():
		useless = "nothing to wait for: give --delay (LAMEDUCK_DELAY) or --until (LAMEDUCK_UNTIL)"
	}
	if !shim.Hold(cfg, faults, useless) {
		return exitFailed
	}
	return 0
}

// explain prints what a stop of a run or of a preStop hook would do, and does not start the
// command.
func explain(cfg shim.Config, asHook bool) int {
	outline, err := shim.Review(cfg)
	if err != nil {
		return failIn(cfg.JSON, err)
	}
	for _, w := range outline.Warnings {
		shim.Say("warning: "+w, cfg.JSON)
	}
	return answer(outline.Explain(asHook))
}

// isHook reports whether lameduck hold may be a preStop hook: a hook has no terminal, is not
// PID 1, and asks nothing. Users at a terminal get errors at once.
func isHook(line *cli.Line) bool {
	asks := line.Questions != (cli.Questions{})
	return !asks && os.Getpid() != 1 && !shim.IsTerminal(0) && !shim.IsTerminal(2)
}

// entrypointHolds reports whether PID 1 is or runs a lameduck that was asked for a hold, and by which
// variable if not by its flags: the variable may have been meant for the hook. An environment
// that cannot be read counts as yes: a doubled hold is worse than none.
func entrypointHolds() (holds bool, because string) {
	argv, env, ours := shim.Entrypoint()
	if !ours {
		argv = lameduckOf(argv)
		ours = argv != nil
	}
	if !ours || env == nil {
		return ours, ""
	}
	cfg, err := configOf(argv, env)
	for _, flag := range []string{"on-stop", "wait-gone", "wait-url", "until", "delay"} {
		if value, _ := cli.Lookup(env, shim.Variable(flag)); value != "" {
			because = fmt.Sprintf(", because of %s, and without the flags of this hook", shim.Variable(flag))
		}
	}
	if without, err := configOf(argv, nil); err == nil && without.Holds() {
		because = ""
	}
	return err == nil && cfg.Holds(), because
}

// lameduckOf returns the command line of the lameduck that a command is, or runs as tini does; nil if
// there is none.
func lameduckOf(command []string) []string {
	for i, word := range command {
		if filepath.Base(word) == "lameduck" {
			return command[i:]
		}
	}
	return nil
}

// warnIfDoubled adds a warning to cfg if both it and a lameduck in its command hold.
func warnIfDoubled(cfg *shim.Config) {
	argv := lameduckOf(cfg.Command)
	if argv == nil || !cfg.Holds() {
		return
	}
	if inner, err := configOf(argv, nil); err == nil && inner.Holds() {
		cfg.Warnings = append(cfg.Warnings, "the command runs a lameduck that holds, too, and the two holds add up: "+
			"leave out the flags of one")
	}
}

// configOf returns the configuration of a lameduck that was called with argv.
func configOf(argv, env []string) (shim.Config, error) {
	if d := dropinFor(argv[0]); d != nil {
		cfg, _, err := d.config(argv[1:], env)
		return cfg, err
	}
	return runConfig(argv[1:], env)
}
