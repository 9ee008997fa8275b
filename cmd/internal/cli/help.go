package cli

import (
	"bytes"
	_ "embed" // for help.txt
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"
)

// HelpText returns the answer to --help, the everyday flags of lameduck, on one screen, or all flags
// of a subcommand; and to --help-all, all flags, with variables, and the course of a stop.
func (l *Line) HelpText() string {
	switch {
	case l.name == "hold":
		return l.help(holdIntro) + holdOutro
	case l.name == "watch":
		return l.help(watchIntro) + watchOutro
	case l.HelpAll:
		return l.help(runIntro+runCommands) + runOutro + runNotes
	}
	return l.help(runIntro) + runOutro
}

const runIntro = `lameduck runs COMMAND as the first process of a container: it reaps orphans and
forwards signals. On TERM it keeps COMMAND serving for a while, then stops it.

Usage: lameduck [flags] [--] COMMAND [ARG...]
       lameduck hold | watch | presets [NAME] | install DIR`

const runCommands = `

Commands:
  hold            wait until it is safe to stop: a preStop hook (hold --help)
  watch           say what a stop has cost, beside any server (watch --help)
  presets [NAME]  explain a preset, with its source, or list all
  install DIR     copy this program to DIR/lameduck`

const runOutro = `
DUR is seconds (10) or units (1m30s). SIG is a name (TERM, SIGTERM, RTMIN+3) or
a number. Every setting has a variable: LAMEDUCK_DELAY=10 is --delay=10.
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
  lameduck -e stop:1 -- supervisor
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
sent, rewritten, once. lameduck does not send KILL unless asked to. Without a
hold every stop signal is forwarded at once. If COMMAND is a shell or npm, that
is enough: what it leaves behind gets its signal, once, and the rest of the
grace period. If COMMAND has no handler for HUP, USR1 or USR2, those that a
process sends are not passed on.

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
its PID namespace. With --preset, --stop-schedule or --kill-after it then stops
PID 1, or what is below a PID 1 that does not handle the signal.

Usage: lameduck hold [flags]`

const holdOutro = `
TERM or INT ends the hold, with 0. If a lameduck that holds runs the command,
lameduck hold says so and returns at once: two holds would add up. Its lines
also go to PID 1's standard error, where kubectl logs shows them. A wrong flag
does not cost the hold: lameduck hold says so, holds by the other flags, and
returns 125 at the end, which Kubernetes reports (FailedPreStopHook).
Every setting has a variable: LAMEDUCK_DELAY=10 is --delay=10.

  lifecycle: {preStop: {exec: {command: [/lameduck, hold, --delay=10]}}}
`

const watchIntro = `lameduck watch says what a stop has cost: how many requests were cut, and how
many connections were refused. It runs beside a server, which stays as it is,
and shows the traffic, a line a second.

Usage: lameduck watch [flags]`

const watchOutro = `
It follows every listener of its network namespace, or --count-port. TERM says
that the stop has begun; INT or a second TERM ends watch. When the last listener
has gone, and nobody has been refused for --quiet-for, it says what was lost,
and writes that to the termination log; a second before the grace period ends at
the latest. Then it exits with 0 if TERM has come, or else goes on. Without TERM
before the server's end, the times count from that end; a TERM after it is that
of a native sidecar, which exits --quiet-for after it. A port that listens again
is said, too.

  kubectl debug -it POD --profile=restricted --image=IMAGE -- /lameduck watch
`

// helpWidth is the width of a terminal.
const helpWidth = 80

// texts has a line for each flag: NAME=VALUE: HELP. An everyday flag, which is in --help, has a star
// before the colon.
//
//go:embed help.txt
var texts string

// describe gives a flag its help and the name of its value, and reports whether it is an everyday flag.
func describe(f *kong.Flag) (everyday bool) {
	for line := range strings.Lines(texts) {
		head, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		head, everyday = strings.CutSuffix(head, "*")
		name, value, _ := strings.Cut(head, "=")
		if name == f.Name {
			f.Help, f.PlaceHolder = text, value
			return everyday
		}
	}
	return false
}

// help returns kong's help for the command: the everyday flags, or all flags, in groups and
// with variables.
func (l *Line) help(intro string) string {
	var out bytes.Buffer
	k := newParser(new(Flags), kong.Description(intro), kong.Writers(&out, &out),
		kong.ConfigureHelp(kong.HelpOptions{NoAppSummary: true, NoAppDescFormat: true, WrapUpperBound: helpWidth}))
	k.Model.Flags = flagsOf(l.name, k.Model.Flags)
	for _, f := range k.Model.Flags {
		everyday := describe(f)
		switch variable := Variable(f); {
		case l.name == "run" && !l.HelpAll:
			f.Group, f.Hidden = nil, !everyday
		case variable != "":
			f.Help += " ($" + variable + ")"
		}
	}
	ctx, _ := kong.Trace(k, nil) // no words, no error
	_ = ctx.PrintUsage(false)
	return strings.TrimLeft(out.String(), "\n")
}

// RecordedVersion returns the version of the program's module, if the go command has recorded
// a version, or otherwise.
func RecordedVersion(otherwise string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return otherwise
	}
	return info.Main.Version
}
