package cli

import (
	"bytes"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpText returns the common flags of lameduck, on one screen.
func (*Run) HelpText() string {
	return helpOf(new(Run), runIntro, false, "common") + runOutro
}

// HelpAllText returns all flags of lameduck, with variables, and the course of a stop.
func (*Run) HelpAllText() string {
	return helpOf(new(Run), runIntro+runCommands, true) + runOutro + runNotes
}

// HelpText returns the common flags of lameduck hold, and the names of the other flags. With
// --help-all, HelpText returns all flags.
func (h *HoldOnly) HelpText() string {
	if h.HelpAll.Value {
		return helpOf(new(HoldOnly), holdIntro, true, "hook") + holdOutro
	}
	return helpOf(new(HoldOnly), holdIntro, false, "hook", "common") + others(new(HoldOnly), "hold", "hook", "common") + holdOutro
}

// HelpText returns the flags of lameduck watch, as HoldOnly.HelpText does.
func (w *Watch) HelpText() string {
	if w.HelpAll.Value {
		return helpOf(new(Watch), watchIntro, true) + watchOutro
	}
	return helpOf(new(Watch), watchIntro, false, "common") + others(new(Watch), "watch", "common") + watchOutro
}

const runIntro = `lameduck runs COMMAND as the first process of a container: it reaps orphans and
forwards signals. On TERM it keeps COMMAND serving for a while, then stops it.

Usage: lameduck [flags] [--] COMMAND [ARG...]
       lameduck hold | watch | presets [NAME] | install DIR`

const runCommands = `

Commands:
  hold            wait until it is safe to stop: a preStop hook (hold --help)
  watch           show the traffic that a hold would see, live (watch --help)
  presets [NAME]  explain a preset, with its source, or list all
  install DIR     copy this program to DIR/lameduck`

const runOutro = `
DUR is seconds (10) or units (1m30s). SIG is a name (TERM, SIGTERM, RTMIN+3) or
a number. Every flag has a variable: LAMEDUCK_DELAY=10 is --delay=10.
`

const runNotes = `
A flag wins over its variable, an empty variable counts as unset, and COMMAND
does not get the variables. Flags end at the first word that is not a flag; "--"
before COMMAND is always safe.

Examples:
  lameduck --delay=10 -- myserver
  lameduck --until=quiet -- myserver
  lameduck -p auto -u quiet -- run.sh nginx
  lameduck -d 5 -r TERM:USR1 -- haproxy -f FILE
  lameduck -u quiet --ignore-peer=10.0.0.1 -- myserver
  lameduck --wait-gone=/run/app/alive -- envoy
  lameduck --alive-file=/run/app/alive -- myserver
  lameduck --on-stop=deregister -- myserver
  lameduck --stop-schedule=USR1/30/TERM -- myserver
  lameduck --kill-after=20 -- myserver
  lameduck --linger=5 -- mydaemon
  lameduck --health=:9000=:8080 -d 5 -- myserver
  lameduck --subreaper=false -- make
  lameduck --parent-death-signal=TERM -- myserver
  lameduck -e 143 -- java -jar app.jar
  lameduck -d 10 --log-format=json -- myserver
  lameduck -g -- sh -c 'producer | consumer'

A stop: TERM, the signal TERM is rewritten to (except INT) and --stop-signal
start the stop, matched before rewriting. With --delay the hold begins: COMMAND
keeps running and gets all other signals. The hold ends after the delay, or at
once when a second stop signal arrives (within a second of the first it counts
as the same), when INT arrives, or when COMMAND exits. With --until the hold
then lasts until traffic has stopped, at most to the ceiling; after the delay it
ends at once if COMMAND listens nowhere or is hung. Then the stop signal is
sent, rewritten, once. lameduck sends no KILL unless asked to. Without a hold
every stop signal is forwarded at once.

The hold must fit into the grace period: of G seconds, G - R - 1 are for the
hold, where R is 10 or a third of G, whichever is less, plus --linger. A longer
delay is an error if the grace period was given, and a warning if it was
assumed.

Called as tini, tini-static, docker-init, dumb-init, catatonit or podman-init,
lameduck takes that program's flags, variables and exit codes; LAMEDUCK_*
variables work there too.

Exit codes: COMMAND's own; 128+n if signal n killed it; 127 not found; 126 found
but not executable; 125 lameduck's own error, before COMMAND ran.
`

const holdIntro = `lameduck hold waits until it is safe to stop this container, and returns 0: a
preStop hook instead of a sleep. It observes the connections to all processes of
its PID namespace, and starts nothing.

Usage: lameduck hold [flags]`

const holdOutro = `
TERM or INT ends the hold, with 0. If PID 1 is a lameduck that holds by itself,
lameduck hold says so and returns at once: two holds would add up. Its lines
also go to PID 1's standard error, where kubectl logs shows them. A wrong flag
does not cost the hold: lameduck hold says so, holds without the flag, and
returns 125 at the end, which Kubernetes reports (FailedPreStopHook).
Every flag has a variable: LAMEDUCK_DELAY=10 is --delay=10.

  lifecycle: {preStop: {exec: {command: [/lameduck, hold, --delay=10]}}}
`

const watchIntro = `lameduck watch shows the traffic as a hold would see it, a line a second until
interrupted.

Usage: lameduck watch [flags]`

const watchOutro = `
It observes the connections to all processes of its PID namespace, and finds
servers that start later within 6 s. INT, TERM or a closed output ends it, with
0. Silence counts from the last byte that the kernel knows of, so an idle
server is quiet from the start on.

  kubectl exec POD -- /lameduck watch
`

// helpWidth is the width of a terminal.
const helpWidth = 80

// helpOf returns kong's help for a grammar: the flags that have any of the tags, or all
// flags, in groups and with variables. The text of a flag is the value of the first of tags
// that the flag has, or else the flag's help.
func helpOf(grammar any, intro string, all bool, tags ...string) string {
	var out bytes.Buffer
	k, err := newParser(grammar, kong.Description(intro), kong.Writers(&out, &out), kong.ValueFormatter(formatter(all, tags)),
		kong.ConfigureHelp(kong.HelpOptions{NoAppSummary: true, NoAppDescFormat: true, WrapUpperBound: helpWidth}))
	if err != nil {
		return err.Error()
	}
	for _, f := range k.Model.Flags {
		if !all {
			f.Group, f.Hidden = nil, f.Hidden || tagOf(f.Value, tags) == ""
		}
		f.Tag.Envs, f.Envs = nil, f.Tag.Envs // the variables are for the formatter, not for Trace
	}
	ctx, err := kong.Trace(k, nil)
	if err == nil {
		err = ctx.PrintUsage(false)
	}
	if err != nil {
		return err.Error()
	}
	return strings.TrimLeft(out.String(), "\n")
}

// tagOf returns the first of tags that a flag has, or "".
func tagOf(v *kong.Value, tags []string) string {
	for _, tag := range tags {
		if v.Tag.Has(tag) {
			return tag
		}
	}
	return ""
}

// formatter returns the texts that kong prints beside the flags.
func formatter(all bool, tags []string) kong.HelpValueFormatter {
	return func(v *kong.Value) string {
		text := v.Help
		if tag := tagOf(v, tags); tag != "" {
			text = v.Tag.Get(tag)
		}
		if all && len(v.Flag.Envs) > 0 {
			text += " ($" + v.Flag.Envs[0] + ")"
		}
		return text
	}
}

// Model returns kong's model of a grammar: all flags, with variables and help.
func Model(grammar any) (*kong.Application, error) {
	k, err := newParser(grammar)
	if err != nil {
		return nil, err
	}
	return k.Model, nil
}

// others returns a paragraph that names the flags of a subcommand without any of the tags.
func others(grammar any, name string, tags ...string) string {
	model, err := Model(grammar)
	if err != nil {
		return err.Error()
	}
	lines, line := []string{}, "And, as for lameduck itself (see lameduck "+name+" --help-all):"
	for _, f := range model.Flags {
		if tagOf(f.Value, tags) != "" || f.Hidden {
			continue
		}
		word := " --" + f.Name
		if len(line)+len(word) > helpWidth {
			lines, line = append(lines, line), " "
		}
		line += word
	}
	return "\n" + strings.Join(append(lines, line), "\n") + "\n"
}
