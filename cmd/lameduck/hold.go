package main

import (
	"os"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// hold is lameduck as a preStop hook. A hook with wrong flags holds without the wrong flags,
// and then fails: the kubelet reports a failed hook as an event (FailedPreStopHook), and
// stops the container as usual.
func hold(args, env []string) int {
	line, cfg, err := parseHold(args, env)
	var wrong []error
	switch {
	case line.Help.Value && err == nil:
		return answer(line.HelpText())
	case err != nil && !isHook(args):
		return failIn(cfg.JSON, err)
	case err != nil:
		cfg, wrong = cli.HookAnyway(args, env)
	case line.Explain.Value:
		return explain(shim.ExplainHold, cfg)
	}
	if err := holdOrDecline(cfg, wrong); err != nil {
		return exitFailed
	}
	return 0
}

// holdOrDecline holds, unless a hold would be useless. Errors have been logged.
func holdOrDecline(cfg shim.Config, wrong []error) error {
	switch {
	case entrypointHolds():
		return shim.Decline(cfg, wrong, "PID 1 is a lameduck that holds by itself; nothing to do")
	case !cfg.Holds():
		return shim.Decline(cfg, wrong, "nothing to wait for: give --delay or --until")
	}
	return shim.Hold(cfg, wrong)
}

// parseHold returns the command line of a hook and its configuration, or the first error.
// With --help, values are not checked.
func parseHold(args, env []string) (*cli.HoldOnly, shim.Config, error) {
	line, err := cli.ParseHold(args, env)
	if err != nil || line.Help.Value {
		return line, shim.Config{JSON: cli.AsksJSON(env)}, err
	}
	cfg, err := line.Config()
	if err == nil {
		err = cfg.Validate()
	}
	return line, cfg, err
}

// isHook reports whether lameduck hold may be a preStop hook: a hook has no terminal, is not
// PID 1, and does not ask for help. Users at a terminal get errors at once.
func isHook(args []string) bool {
	asks := slices.ContainsFunc(args, func(word string) bool {
		return slices.Contains([]string{"--explain", "--help", "--help-all", "-h"}, word)
	})
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
	line, err := cli.ParseRun(argv[1:], env)
	if err != nil {
		return shim.Config{}, err
	}
	return line.Config()
}
