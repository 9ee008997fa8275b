package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// errNoCommand also names the usual reason: see "Understand how CMD and ENTRYPOINT interact"
// in the Dockerfile reference, and the table of command and args in Kubernetes' "Define a
// Command and Arguments for a Container".
var errNoCommand = errors.New("no command to run: lameduck [flags] -- COMMAND [ARG...]; " +
	"an ENTRYPOINT resets the CMD of the base image, so repeat CMD (both in brackets); " +
	"a pod's command does the same, so give args")

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
	if len(args) > 1 && args[0] == "--explain" && args[1] == "hold" {
		return hold(append([]string{"--explain"}, args[2:]...), env)
	}
	return run(args, env)
}

// run runs the command under the shim, unless the flags only ask.
func run(args, env []string) int {
	line, err := cli.Parse("run", args, env)
	switch {
	case err != nil:
	case line.Help:
		return answer(line.HelpText())
	case line.Version:
		return answer(versionLine())
	case len(line.Command) == 0 && !line.Explain:
		err = errNoCommand
	case os.Getppid() == 0 && isHook(line): // see failWithout
		err = shim.Find(line.Command, line.Env)
	}
	if err != nil {
		return failWithout(line, args, env, err)
	}
	cfg, err := line.Config()
	if err != nil {
		return failIn(cfg.JSON, err)
	}
	warnIfDoubled(&cfg)
	if line.Explain {
		return explain(cfg, false)
	}
	code, err := shim.Run(cfg)
	if err == nil {
		return code
	}
	return failIn(cfg.JSON, err)
}

// failWithout fails for a fault on the line, or for lack of a command, unless lameduck is probably a
// preStop hook: a slip in one word must not cost the hold.
//
// A hook whose author forgot the word hold has no command, and holds. A child of PID 1 is none: somebody
// runs lameduck under an init, and forgot the command. A hook that was meant to say hold, and names no
// program that can be executed, has entered the container from outside: its parent is not in its PID
// namespace. The flags count, before that word and after it, and the hook fails at the end.
func failWithout(line *cli.Line, args, env []string, err error) int {
	parent := os.Getppid()
	hasCommand := len(args) == 0 || args[0] == "--" || len(line.Command) > 0
	switch {
	case !isHook(line) || parent == 1 || hasCommand && parent != 0:
		return failIn(line.LogFormat == "json", err)
	case !hasCommand:
		return hold(args, env, "no command: holding as lameduck hold, which a preStop hook should say")
	}
	words := line.Command
	if len(words) == 1 {
		words = strings.Fields(words[0])
	}
	flags := slices.Concat(args[:len(args)-len(line.Command)], words[min(1, len(words)):])
	hold(flags, env, fmt.Sprintf("%v: holding as lameduck hold, which a preStop hook has to say", err))
	return exitFailed
}

// runDropin is lameduck under another name.
func runDropin(d *dropin, args, env []string) int {
	cfg, f, err := d.config(args, env)
	if text, fd := d.answer(&f); text != "" {
		return answerOn(fd, text)
	}
	if err == nil {
		warnIfDoubled(&cfg)
		code, failed := shim.Run(cfg)
		if failed == nil {
			return code
		}
		err = failed
	}
	shim.Say(err.Error(), cfg.JSON)
	var start *shim.StartError
	if errors.As(err, &start) {
		return cmp.Or(d.codes[start.Err], d.failed)
	}
	return exitDropin
}
