package main

import (
	"errors"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// watch is lameduck as a live view of the traffic, and of what a stop costs.
func watch(args, env []string) int {
	line, err := cli.Parse("watch", args, env)
	switch {
	case err != nil:
		return fail(err)
	case line.Help:
		return answer(line.HelpText())
	}
	cfg, err := line.Config()
	if err == nil {
		err = shim.Watch(cfg, line.OnlyStops, func(text string) error { return write(syscall.Stdout, text+"\n") })
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return fail(err)
	}
	return 0
}
