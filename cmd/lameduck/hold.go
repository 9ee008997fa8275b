package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

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
	cfg := line.Tolerant()
	faults := line.Faults
	switch {
	case len(faults) > 0 && !isHook(line):
		err = cmp.Or[error](err, faults[0])
		return failIn(cfg.JSON, fmt.Errorf("%w; a preStop hook would hold without it, and fail", err))
	case line.Explain:
		return explain(cfg, true)
	}
	cfg.Warnings = append(cfg.Warnings, warnings...)
	useless := ""
	switch pid := shim.HoldsItself(); {
	case pid != 0:
		useless = fmt.Sprintf("PID %d is a lameduck that holds by itself, without the flags of this hook; nothing to do", pid)
	case !cfg.Holds() && len(faults) > 0:
		useless = "the grace period leaves no time to hold"
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
	p, err := shim.Review(cfg)
	if err != nil {
		return failIn(cfg.JSON, err)
	}
	for _, w := range p.Warnings {
		shim.Say("warning: "+w, cfg.JSON)
	}
	return answer(shim.Explain(p, asHook))
}

// isHook reports whether lameduck hold may be a preStop hook: a hook has no terminal, is not
// PID 1, and asks nothing. Users at a terminal get errors at once.
func isHook(line *cli.Line) bool {
	asksNothing := line.Questions == (cli.Questions{})
	return asksNothing && os.Getpid() != 1 && !shim.IsTerminal(0) && !shim.IsTerminal(2)
}

// warnIfDoubled adds a warning to cfg if both it and a lameduck in its command hold.
func warnIfDoubled(cfg *shim.Config) {
	isLameduck := func(word string) bool { return filepath.Base(word) == "lameduck" }
	at := slices.IndexFunc(cfg.Command, isLameduck)
	if at < 0 || !cfg.Holds() {
		return
	}
	line, fault := cli.Parse("run", cfg.Command[at+1:], nil)
	inner, err := line.Config()
	if fault == nil && err == nil && inner.Holds() {
		cfg.Warnings = append(cfg.Warnings, "the command runs a lameduck that holds, too, and the two holds add up: "+
			"leave out the flags of one")
	}
}
