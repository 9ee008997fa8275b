package main

import (
	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// hold is lameduck as a preStop hook.
func hold(args, env []string) int {
	line, err := cli.ParseHold(args, env)
	switch {
	case err != nil:
		return fail(err)
	case line.Help.Value:
		return answer(line.HelpText())
	}
	cfg, err := line.Config()
	switch {
	case err != nil:
		return failIn(cfg.JSON, err)
	case entrypointHolds():
		shim.Decline(cfg, "PID 1 is a lameduck that holds by itself; nothing to do")
		return 0
	case !cfg.Holds():
		shim.Decline(cfg, "nothing to wait for: give --delay or --until")
		return 0
	}
	if err := shim.Hold(cfg); err != nil {
		return failIn(cfg.JSON, err)
	}
	return 0
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
