package main

import (
	"cmp"
	"errors"
	"fmt"
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
	if err != nil {
		return fail(err)
	}
	cfg.JSON = line.JSON
	print := func(text string) error { return write(syscall.Stdout, text+"\n") }
	to := shim.Watcher{Say: print}
	switch {
	case line.OnlyStops:
	case line.JSON:
		to.View = func(v shim.View) error { return print(v.JSON()) }
	default:
		to.View = func(v shim.View) error { return print(lineOf(v)) }
	}
	err = shim.Watch(cfg, to)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return fail(err)
	}
	return 0
}

// lineOf returns a view as one line.
func lineOf(v shim.View) string {
	ports := cmp.Or(shim.PortList(v.Ports), "none")
	return fmt.Sprintf("%s ports %s; %d open, %d in flight, %d new; last new connection %s, byte %s; %s",
		v.Time.Format("15:04:05"), ports, v.Open, v.InFlight, v.New, ago(v.LastNew), ago(v.LastByte), verdict(v))
}

// verdict returns the losses so far, or the strictest condition that is met, and what keeps the
// server from quiet.
func verdict(v shim.View) string {
	switch {
	case v.Cut != nil && v.Refused != nil:
		return fmt.Sprintf("%d cut, %d refused", *v.Cut, *v.Refused)
	case v.Refused != nil:
		return fmt.Sprintf("%d refused", *v.Refused)
	case v.Drained:
		return "drained"
	case v.Quiet:
		return "quiet"
	case v.Settled && v.InFlight > 0:
		return "settled, but requests are in flight"
	case v.Settled:
		return "settled, but bytes come"
	case v.InFlight > 0:
		return "busy: requests are in flight"
	case v.Queued:
		return "busy: connections wait to be accepted"
	}
	return "busy: new connections"
}

// ago returns a time in milliseconds for people.
func ago(ms *int64) string {
	if ms == nil {
		return "none yet"
	}
	return fmt.Sprintf("%.1f s ago", float64(*ms)/1000)
}
