package main

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/lameduck-init/lameduck/shim"
)

const watchHelp = `lameduck watch shows the traffic as a hold would see it, once a second, until it
is interrupted: on a terminal a view of it all, else a line each time.

usage: lameduck watch [flags]

      --json                   one JSON object a line
      --quiet-for --max-silence --count-port --ignore-port --ignore-peer
      --ignore-probes          as for lameduck itself: see lameduck --help-all

It looks at the connections to all processes of the PID namespace that it runs
in, and finds servers that start later within 6 s. INT, TERM or a reader that is
gone ends it, with 0.

  kubectl exec POD -- /lameduck watch
`

// watchCLI is the grammar of the live view.
type watchCLI struct {
	trafficFlags
	JSON bool `name:"json"`
	Help bool `short:"h"`
}

// watch is lameduck as a live view of the traffic.
func watch(args, env []string) int {
	var c watchCLI
	t, err := read(&c, args, env, &cli{}, "lameduck watch --help lists the flags; to run a program of that name: lameduck -- watch")
	switch {
	case err != nil:
		return fail(err)
	case c.Help:
		return tellOn(false, watchHelp)
	}
	cfg := shim.Config{Env: t.rest, Until: shim.Quiet}
	if err := c.trafficFlags.config(t, &cfg); err != nil {
		return fail(err)
	}
	show, nothing := plainly, func() {}
	display := shim.Display{Enter: nothing, Leave: nothing}
	switch {
	case c.JSON:
		show = jsonView
	case shim.IsTerminal(syscall.Stdout):
		show = screen
		display.Enter = func() { write(syscall.Stdout, enter) }
		display.Leave = func() { write(syscall.Stdout, leave) }
	}
	display.Show = func(v shim.View) error { return write(syscall.Stdout, show(v)) }
	if err := shim.Watch(cfg, display); err != nil && !errors.Is(err, syscall.EPIPE) {
		return fail(err)
	}
	return 0
}

// What a terminal is told: to show another screen, without a cursor and with long
// lines cut, to begin it anew, to clear the rest of a line, and of the screen. See
// console_codes(4).
const (
	enter     = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leave     = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	restOfRow = "\x1b[K\r\n"
	rest      = "\x1b[J"
)

// screen is a view for a terminal.
func screen(v shim.View) string {
	rows := []string{
		fmt.Sprintf("lameduck watch  %s  %s", v.Time.Format("15:04:05"), observer(v)),
		"",
		"ports       " + places(v),
		fmt.Sprintf("open        %d, %d in flight", v.Open, v.InFlight),
		fmt.Sprintf("new/s       %s %d now, %d in all", shim.Sparkline(v.Recent), v.New, v.Accepted),
		"last        new connection " + ago(v.LastNew) + ", byte " + ago(v.LastByte),
		"it is       " + verdict(v),
	}
	for i, p := range v.Peers {
		rows = append(rows, fmt.Sprintf("%-11s %d open from %v", title(i, "peers"), p.Open, p.Peer))
	}
	for i, p := range v.Probes[:min(len(v.Probes), most)] {
		rows = append(rows, fmt.Sprintf("%-11s %d bytes from %v to %d every %.1f s", title(i, "probes?"), p.Bytes, p.Peer, p.Port, float64(p.PeriodMS)/1000))
	}
	if v.Trouble != "" {
		rows = append(rows, "trouble     "+v.Trouble)
	}
	for i, row := range rows {
		rows[i] = shim.Printable(row) // the escapes are to be ours alone
	}
	return home + strings.Join(rows, restOfRow) + restOfRow + rest
}

// most is how many of a kind are shown to people.
const most = 8

// observer is who looks, and at whose listeners.
func observer(v shim.View) string {
	if v.Observer == nil {
		return "nothing listens"
	}
	return fmt.Sprintf("seen by %s, scope %s", *v.Observer, v.Scope)
}

// title is the word before the first row of its kind.
func title(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}

// plainly is a view on a line.
func plainly(v shim.View) string {
	line := fmt.Sprintf("%s ports %s; %d open, %d in flight, %d new; last new connection %s, byte %s; %s",
		v.Time.Format("15:04:05"), places(v), v.Open, v.InFlight, v.New, ago(v.LastNew), ago(v.LastByte), verdict(v))
	return shim.Printable(line) + "\n"
}

func jsonView(v shim.View) string { return v.JSON() + "\n" }

// places is where the container listens.
func places(v shim.View) string {
	var list []string
	for _, port := range v.Ports {
		list = append(list, fmt.Sprint(port))
	}
	for _, port := range v.UDP {
		list = append(list, fmt.Sprintf("%d/udp (not seen)", port))
	}
	for _, path := range v.Unix {
		list = append(list, shim.Quote(path)+" (not seen)")
	}
	switch n := len(list) - most; {
	case len(list) == 0:
		return "none"
	case n > 0:
		list = append(list[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, ", ")
}

// verdict is the strictest of the conditions that hold.
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

func ago(ms *int64) string {
	if ms == nil {
		return "none yet"
	}
	return fmt.Sprintf("%.1f s ago", float64(*ms)/1000)
}
