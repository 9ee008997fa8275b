package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/cmd/internal/cli"
	"github.com/lameduck-init/lameduck/shim"
)

// watch is lameduck as a live view of the traffic.
func watch(args, env []string) int {
	line, err := cli.ParseWatch(args, env)
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
	render := lineOf
	if line.JSON {
		render = func(v shim.View) string { return v.JSON() + "\n" }
	}
	err = shim.Watch(cfg, func(v shim.View) error { return write(syscall.Stdout, render(v)) })
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return fail(err)
	}
	return 0
}

// maxShown is how many ports people are shown.
const maxShown = 8

// lineOf returns a view as one line.
func lineOf(v shim.View) string {
	var peers []string
	for _, p := range v.Peers {
		peers = append(peers, fmt.Sprintf("%v (%d)", p.Addr, p.Open))
	}
	if len(peers) == 0 {
		peers = []string{"none"}
	}
	line := fmt.Sprintf("%s ports %s; %d open, %d in flight, %d new; last new connection %s, byte %s; peers %s; %s",
		v.Time.Format("15:04:05"), portsOf(v), v.Open, v.InFlight, v.New,
		ago(v.LastNew), ago(v.LastByte), strings.Join(peers, ", "), verdict(v))
	return shim.Printable(line) + "\n"
}

// portsOf returns where the container listens.
func portsOf(v shim.View) string {
	var list []string
	for _, port := range v.Ports {
		list = append(list, strconv.Itoa(int(port)))
	}
	for _, port := range v.UDP {
		list = append(list, fmt.Sprintf("%d/udp (not seen)", port))
	}
	for _, path := range v.Unix {
		list = append(list, shim.Quote(path)+" (not seen)")
	}
	switch n := len(list) - maxShown; {
	case len(list) == 0:
		return "none"
	case n > 0:
		list = append(list[:maxShown], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, ", ")
}

// verdict returns the strictest condition that is met, and what keeps the server from quiet.
func verdict(v shim.View) string {
	switch {
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
