package main

import (
	"errors"

	"github.com/lameduck-init/lameduck/shim"
)

// The exit codes that are ours, as env(1) and docker-run(1) have them. All
// others are the command's own, or 128+n.
const (
	exitFailed   = 125 // lameduck itself failed, or was asked for the impossible
	exitRefused  = 126 // the command was found but could not be executed
	exitNotFound = 127
)

// lameduck runs the command line and returns the exit code.
func lameduck(argv0 string, args, env []string) int {
	if d := dropinFor(argv0); d != nil {
		return runDropin(d, args, env)
	}
	if len(args) > 0 {
		switch args[0] {
		case "hold":
			return hold(args[1:], env)
		case "watch":
			return watch(args[1:], env)
		case "install":
			return install(args[1:])
		case "presets":
			return presets(args[1:])
		}
	}
	c, t, err := parse(args, env)
	if err != nil {
		return failIn(asksJSON(env), err)
	}
	switch {
	case c.HelpAll:
		return tellOn(false, helpText+helpAllText)
	case c.Help:
		return tellOn(false, helpText)
	case c.Version:
		return tellOn(false, versionLine())
	}
	cfg, err := c.config(t)
	switch {
	case err != nil:
		return failIn(cfg.JSON, err)
	case c.Explain:
		return explain(cfg)
	case len(c.Command) == 0:
		return failIn(cfg.JSON, errors.New("no command to run: lameduck [flags] -- COMMAND [ARG...]"))
	}
	code, err := shim.Run(cfg)
	if err != nil {
		return failIn(cfg.JSON, err)
	}
	return code
}

// explain says what would happen, and starts nothing.
func explain(cfg shim.Config) int {
	text, warnings, err := shim.Explain(cfg)
	if err != nil {
		return failIn(cfg.JSON, err)
	}
	for _, w := range warnings {
		complain(errors.New("warning: "+w), cfg.JSON)
	}
	return tellOn(false, text)
}

// fail says what went wrong, and returns the exit code for it.
func fail(err error) int { return failIn(false, err) }

// failIn is fail in the form that was asked for.
func failIn(inJSON bool, err error) int {
	complain(err, inJSON)
	var start *shim.StartError
	switch {
	case !errors.As(err, &start):
		return exitFailed
	case start.Missing():
		return exitNotFound
	case start.Refused():
		return exitRefused
	}
	return exitFailed
}
