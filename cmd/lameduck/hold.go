package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// hold is lameduck as a preStop hook. A hook with an error holds with the defaults, and then
// fails: the kubelet reports a failed hook as an event (FailedPreStopHook), and stops the
// container as usual. A hook that refuses to hold because of a typo would lose requests at
// every stop. The warnings are the caller's.
func hold(args, env []string, warnings ...string) int {
	line, cfg, err := parseHold(args, env)
	switch {
	case err == nil && line.Help:
		return answer(line.HelpText())
	case err == nil && line.Explain:
		return explain(cfg, true)
	case err != nil && !isHook(args):
		return failIn(cfg.JSON, fmt.Errorf("%w; a preStop hook would hold with the defaults, and fail", err))
	}
	cfg.Warnings = append(cfg.Warnings, warnings...)
	useless := ""
	switch {
	case entrypointHolds():
		useless = "PID 1 is a lameduck that holds by itself; nothing to do"
	case !cfg.Holds():
		useless = "nothing to wait for: give --delay (LAMEDUCK_DELAY) or --until (LAMEDUCK_UNTIL)"
	case err != nil:
		err = fmt.Errorf("%w; holding with the defaults", err)
	}
	if !shim.Hold(cfg, err, useless) {
		return exitFailed
	}
	return 0
}

// parseHold returns the command line of a hook and its configuration, or the first error and
// the configuration of a hook without flags and variables. With --help, values are not
// checked.
func parseHold(args, env []string) (*cli.Line, shim.Config, error) {
	line, err := cli.ParseHold(args, env)
	cfg := shim.Config{}
	if err == nil && !line.Help {
		cfg, err = line.Config()
		if err == nil {
			err = cfg.Validate()
		}
	}
	if err != nil {
		cfg = shim.Config{Env: env, Until: shim.Quiet, Level: shim.Warn, JSON: cli.AsksJSON(env)}
	}
	return line, cfg, err
}

// isHook reports whether lameduck hold may be a preStop hook: a hook has no terminal, is not
// PID 1, and does not ask for help. Users at a terminal get errors at once.
func isHook(args []string) bool {
	asks := asksHelp(args) || slices.Contains(args, "--explain")
	return !asks && os.Getpid() != 1 && !shim.IsTerminal(0) && !shim.IsTerminal(2)
}

// entrypointHolds reports whether PID 1 is a lameduck that was asked for a hold. An
// environment that cannot be read counts as yes: a doubled hold is worse than none.
func entrypointHolds() bool {
	argv, env, ours := shim.Entrypoint()
	if !ours || env == nil {
		return ours
	}
	cfg, err := configOf(argv, env)
	return err == nil && cfg.Holds()
}

// configOf returns the configuration of a lameduck that was called with argv.
func configOf(argv, env []string) (shim.Config, error) {
	if d := dropinFor(argv[0]); d != nil {
		words, err := readDropin(d, argv[1:])
		if err != nil {
			return shim.Config{}, err
		}
		return inherit(d, words, env)
	}
	return runConfig(argv[1:], env)
}

// runConfig returns the configuration of a command line of lameduck itself.
func runConfig(args, env []string) (shim.Config, error) {
	line, err := cli.ParseRun(args, env)
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}
