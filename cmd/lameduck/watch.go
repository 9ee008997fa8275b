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
	case line.Help.Value:
		return answer(line.HelpText())
	}
	cfg, err := line.Config()
	if err != nil {
		return fail(err)
	}
	err = shim.Watch(cfg, display(line.JSON.Value))
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return fail(err)
	}
	return 0
}

// display returns how to show views: as JSON, or else on a terminal as a screen, or else
// as lines.
func display(inJSON bool) shim.Display {
	render := lineOf
	none := func() {}
	d := shim.Display{Enter: none, Leave: none}
	switch {
	case inJSON:
		render = func(v shim.View) string { return v.JSON() + "\n" }
	case shim.IsTerminal(syscall.Stdout):
		render = screenOf
		d.Enter = func() { write(syscall.Stdout, enterScreen) }
		d.Leave = func() { write(syscall.Stdout, leaveScreen) }
		d.Keys = shim.IsTerminal(syscall.Stdin)
	}
	d.Show = func(v shim.View) error { return write(syscall.Stdout, render(v)) }
	return d
}

// Escape sequences; see console_codes(4).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // the alternate screen, no cursor, long lines cut
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	endRow      = "\x1b[K\r\n" // clears the rest of the row
	clearBelow  = "\x1b[J"
)

// screenOf returns a view for a terminal.
func screenOf(v shim.View) string {
	rows := []string{
		fmt.Sprintf("lameduck watch  %s  %s", v.Time.Format("15:04:05"), observerOf(v)),
		"",
		"ports       " + portsOf(v),
		fmt.Sprintf("open        %d, %d in flight", v.Open, v.InFlight),
		fmt.Sprintf("new/s       %s %d now, %d in all", shim.Sparkline(v.Recent), v.New, v.Accepted),
		"last        new connection " + ago(v.LastNew) + ", byte " + ago(v.LastByte),
		"state       " + verdict(v),
	}
	for i, p := range v.Peers {
		rows = append(rows, fmt.Sprintf("%-11s %d open from %v", title(i, "peers"), p.Open, p.Peer))
	}
	for i, p := range v.Probes[:min(len(v.Probes), maxShown)] {
		rows = append(rows, fmt.Sprintf("%-11s %d bytes from %v to %d every %.1f s", title(i, "probes?"), p.Bytes, p.Peer, p.Port, float64(p.PeriodMS)/1000))
	}
	if v.Trouble != "" {
		rows = append(rows, "trouble     "+v.Trouble)
	}
	for i, row := range rows {
		rows[i] = shim.Printable(row) // no escape sequence may come from outside
	}
	return home + strings.Join(rows, endRow) + endRow + clearBelow
}

// maxShown is how many probes or ports people are shown.
const maxShown = 8

// observerOf returns how the traffic is observed, and the scope.
func observerOf(v shim.View) string {
	if v.Observer == nil {
		return "nothing listens"
	}
	return fmt.Sprintf("seen by %s, scope %s", *v.Observer, v.Scope)
}

// title returns the word before the first row of a kind.
func title(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}

// lineOf returns a view as one line.
func lineOf(v shim.View) string {
	line := fmt.Sprintf("%s ports %s; %d open, %d in flight, %d new; last new connection %s, byte %s; %s",
		v.Time.Format("15:04:05"), portsOf(v), v.Open, v.InFlight, v.New, ago(v.LastNew), ago(v.LastByte), verdict(v))
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

// verdict returns the strictest condition that is met.
func verdict(v shim.View) string {
	switch {
	case v.Drained:
		return "drained"
	case v.Quiet:
		return "quiet"
	case v.Settled:
		return "settled"
	}
	return "busy"
}

// ago returns a time in milliseconds for people.
func ago(ms *int64) string {
	if ms == nil {
		return "none yet"
	}
	return fmt.Sprintf("%.1f s ago", float64(*ms)/1000)
}
