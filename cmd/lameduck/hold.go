package main

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim"
)

const holdHelp = `lameduck hold waits until it is safe to stop this container, and returns 0: a
preStop hook, in place of a sleep. It looks at the connections to all processes
of the PID namespace that it runs in, and starts nothing.

usage: lameduck hold [flags]

  -d, --delay=DUR              wait at least this long [5s, or half of the
                               longest hold if that is less]
  -u, --until=COND             and then until traffic stops: settled, quiet or
                               drained; elapsed: the delay is all [quiet]
      --max-delay=DUR          but no longer than this [from the grace period]
      --grace-period=DUR       what the orchestrator gives in all; hooks count
      --wait-gone --on-stop --quiet-for --max-silence --count-port
      --ignore-port --ignore-peer --ignore-probes --termination-log
      --log-level --log-format
                               as for lameduck itself: see lameduck --help-all

TERM or INT ends it, with 0. Where PID 1 is a lameduck that holds by itself, it
says so and returns at once: two holds would add up. Its lines go to PID 1's
standard error too, where kubectl logs shows them. Every flag has a variable:
LAMEDUCK_DELAY=10 is --delay=10.

  lifecycle: {preStop: {exec: {command: [/lameduck, hold, --delay=10]}}}
`

// holdCLI is the grammar of the hook.
type holdCLI struct {
	holdFlags
	reportFlags
	Help bool `short:"h"`
}

// hold is lameduck as a preStop hook.
func hold(args, env []string) int {
	var c holdCLI
	t, err := read(&c, args, env, &cli{}, "lameduck hold --help lists the flags; to run a program of that name: lameduck -- hold")
	switch {
	case err != nil:
		return fail(err)
	case c.Help:
		return tellOn(false, holdHelp)
	}
	if len(c.Until) == 0 {
		c.Until = []string{string(shim.Quiet)}
	}
	cfg := shim.Config{Env: t.rest, Level: shim.Warn, Warnings: t.unknown}
	if err := cmp.Or(c.reportFlags.config(t, &cfg), c.holdFlags.config(t, &cfg)); err != nil {
		return failIn(cfg.JSON, err)
	}
	if holdsItself() {
		shim.Decline(cfg, "PID 1 is a lameduck that holds by itself; nothing to do")
		return 0
	}
	if !cfg.Holds() {
		shim.Decline(cfg, "nothing to hold for: give --delay, or --until")
		return 0
	}
	if err := shim.Hold(cfg); err != nil {
		return failIn(cfg.JSON, err)
	}
	return 0
}

// holdsItself reports whether PID 1 is a lameduck that was asked for a hold.
func holdsItself() bool {
	argv, env, ours := shim.Entrypoint()
	if !ours || env == nil {
		return ours // what it was asked for cannot be read
	}
	cfg, err := configOf(argv, env)
	return err == nil && cfg.Holds()
}

// configOf is what a lameduck makes of its words.
func configOf(argv, env []string) (cfg shim.Config, err error) {
	if d := dropinFor(argv[0]); d != nil {
		words, err := readDropin(d, argv[1:])
		if err != nil {
			return cfg, err
		}
		return inherit(d, words, env)
	}
	c, t, err := parse(argv[1:], env)
	if err != nil {
		return cfg, err
	}
	return c.config(t)
}
