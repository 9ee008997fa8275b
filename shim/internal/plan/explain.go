package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Explain returns the outline in plain words, one sentence a line: that of a preStop hook, or
// that of a run.
func (o *Outline) Explain(asHook bool) string {
	p := *o.plan
	p.Hook = asHook
	e := explanation{Plan: &p, Outline: o}
	if asHook {
		e.hook()
	} else {
		e.run()
	}
	return e.text
}

// explanation is a plan in words, line by line, in the order of a stop.
type explanation struct {
	*Plan
	*Outline
	text string
}

// say adds a line.
func (e *explanation) say(format string, args ...any) {
	e.text += quote.Line(report.InWords(format, args...)) + "\n"
}

// hook explains the course of a preStop hook.
func (e *explanation) hook() {
	if !e.Holds() {
		e.say("returns at once: nothing to wait for; give --delay or --until")
		return
	}
	e.preset()
	e.hold("as a preStop hook: waits", "TERM or INT ends the wait at once")
	if e.Stop.SequenceWithoutHold {
		e.say("  then %s, to PID 1, or to what handles it below a PID 1 that does not", e.steps(e.Starts[0].Steps))
		e.say("  then exits with 0 when that has ended, at %s at the latest", e.Grace-stop.ReportMargin)
	} else {
		e.say("  then exits with 0, and the orchestrator sends the stop signal")
	}
	e.say("where PID 1 is a lameduck that holds by itself: exits with 0 at once")
	e.graceNeeded()
}

// run explains a run.
func (e *explanation) run() {
	if len(e.Command) > 0 {
		e.say("runs %s", quote.Shell(e.Command))
	}
	if e.AliveFile != "" {
		e.say("keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(e.AliveFile))
	}
	e.health()
	for _, r := range e.Rewrites {
		if r.To == 0 {
			e.say("drops %v", r.From)
		} else {
			e.say("sends %v where %v arrives", r.To, r.From)
		}
	}
	e.preset()
	if len(e.Starts) == 0 {
		e.say("no signal starts a stop")
		return
	}
	e.duringStop()
	if e.Linger > 0 {
		e.say("when the command has exited: its remaining processes get their signal, and KILL %s later", e.Linger)
	}
	e.exitCodes()
	if e.Holds() || e.givenTimes() != "" {
		e.graceNeeded()
	}
}

// health explains the health listener.
func (e *explanation) health() {
	if e.Health == nil {
		return
	}
	answer := "answers health checks on %v with 200; %s"
	if e.Health.Target.Port() != 0 {
		answer = "passes health checks through, %v, which do not count as traffic; %s"
	}
	during := [...]string{
		check.Pass:  "also during a stop",
		check.Fail:  "from the first stop signal on they get 503",
		check.Close: "from the first stop signal on they are refused",
	}
	e.say(answer, e.Health, during[e.HealthDuring])
}

// preset explains --preset.
func (e *explanation) preset() {
	known, name := e.Server, e.Config.Preset
	switch {
	case name == "":
		return
	case known == nil:
		e.say("preset auto: that of the program that runs when a stop signal arrives")
		return
	case name == preset.Auto:
		name = "auto, probably " + known.Name
	}
	e.say("preset %s, stopped by %s: %s", name, known.Schedule, known.Says)
	if known.Caveat != "" {
		e.say("  caveat: %s", known.Caveat)
	}
}

// duringStop explains the course of a stop.
func (e *explanation) duringStop() {
	var names []string
	for _, start := range e.Starts {
		names = append(names, start.Signal.String())
	}
	begin := "on " + strings.Join(names, " or ")
	switch {
	case !e.Sequence:
		e.say("%s: passes it on at once; no hold, schedule or preset was asked for", begin)
		e.awaitWork()
		return
	case e.Holds():
		e.hold(begin+": keeps serving", "a second stop signal, more than a second later, or INT, ends the hold at once")
	default:
		e.say("%s: does not hold", begin)
	}
	first := e.steps(e.Starts[0].Steps)
	orOther := ""
	if e.Config.Preset == preset.Auto && e.Server == nil && e.Schedule == nil {
		orOther = ", or as the server's preset says, if there is one"
	}
	e.say("  then %s%s", first, orOther)
	for _, start := range e.Starts[1:] {
		if steps := e.steps(start.Steps); steps != first {
			e.say("  if %v came: %s", start.Signal, steps)
		}
	}
	if e.Server != nil && !e.Group && !e.Session {
		e.say("  to %s itself, also where it runs behind a shell or another init", e.Server.Name)
	}
	if e.KillAfter == 0 && !e.Starts[0].Steps.Kills() {
		e.awaitWork()
		assumed := ""
		if e.GraceAssumed {
			assumed = " (assumed)"
		}
		e.say("  does not send KILL; the orchestrator does, at %s%s", e.Grace, assumed)
	}
}

// awaitWork explains what becomes of the processes that the command leaves behind at a stop.
func (e *explanation) awaitWork() {
	if e.Stop.AwaitWork {
		e.say("  waits for what the command leaves behind and handles its signal, to %s at the latest",
			e.Grace-stop.ReportMargin)
	}
}

// hold explains the hold, which begin describes ("keeps serving"), what happens beside it, and
// its early end.
func (e *explanation) hold(begin, endsEarly string) {
	silence := e.Traffic.QuietFor
	condition := ""
	if e.Until != Elapsed {
		condition = report.InWords(map[stop.Reason]string{
			stop.Settled: "no new connection has come for %s",
			stop.Quiet:   "nobody has connected or sent a byte for %s and no request is in flight",
			stop.Drained: "nobody has connected or sent a byte for %s and no connection is open",
		}[e.Until], silence)
	}
	until := strings.Join(e.Terms.Awaited(condition, "answers 200 or refuses"), ", and ")
	switch {
	case until == "":
		e.say("%s for %s", begin, e.MaxHold)
	case e.Delay > 0:
		e.say("%s at least %s, until %s, at most %s", begin, e.Delay, until, e.MaxHold)
	default:
		e.say("%s until %s, at most %s", begin, until, e.MaxHold)
	}
	switch on := &e.OnStop; {
	case on.Request != nil:
		e.say("  meanwhile sends %v", on.Request)
	case on.Runs():
		e.say("  meanwhile runs %s", quote.Shell(on.Command))
	}
	if told := e.Stop.Tell; told != 0 {
		e.say("  at its beginning sends %v to %s, only to processes that handle %[1]v", told, e.Told())
	}
	e.say("  %s", endsEarly)
	if e.Until != Elapsed {
		patiently := report.InWords("is left out once all other traffic has been silent for %s", silence)
		e.say("  what looks like a health probe %s", [...]string{
			traffic.IgnoreProbes:          "is left out at once",
			traffic.CountProbes:           "counts",
			traffic.IgnoreProbesPatiently: patiently,
		}[e.Probes])
	}
	if len(e.CountPorts) > 0 && e.Until != Elapsed {
		e.say("  other ports than %s count only if nothing listens there", report.PortList(e.CountPorts))
	}
	if e.CloseIdle {
		e.say("  when no new connection has come for a second: " +
			"closes the clients' kept connections while they are idle")
	}
	named := slices.DeleteFunc(slices.Clone(e.Goaway), func(port uint16) bool { return port == letgo.Auto })
	if len(named) > 0 {
		e.say("  when no new connection has come for a second: sends GOAWAY to the clients of port %s, "+
			"if the server says that it speaks HTTP/2", report.PortList(named))
	}
	if slices.Contains(e.Letgo.Goaway, letgo.Auto) {
		e.say("  asks each server whose clients keep connections whether it speaks HTTP/2 alone: " +
			"these clients are sent GOAWAY")
	}
	if longest := traffic.KeptFor * silence; e.Until == stop.Quiet && longest < e.MaxHold {
		e.say("  clients that keep their connections prolong the hold to %s after the last new connection", longest)
	}
}

// steps explains the signals after the hold up to KILL, and the latest time of KILL. A preset's
// steps that would come after the KILL of --kill-after are left out.
func (e *explanation) steps(schedule stop.Schedule) string {
	latest := ""
	if e.MaxHold > e.Delay {
		latest = " at the latest"
	}
	var parts []string
	var wait time.Duration // since the previous signal
	at := e.MaxHold
	kill := at + schedule.InitialWait() + e.KillAfter
steps:
	for i, step := range schedule {
		if e.KillAfter > 0 && at >= kill {
			break
		}
		later := ""
		if wait > 0 {
			later = report.InWords("%s later ", wait)
		}
		switch {
		case step.Forever:
			parts = append(parts, fmt.Sprintf("%s%v, repeated forever", later, schedule[i+1:]))
			break steps
		case step.Signal == sig.KILL:
			parts = append(parts, report.InWords("%sKILL, at %s%s", later, at, latest))
		case step.Signal != 0:
			parts = append(parts, later+step.Signal.String())
			wait = 0
		}
		wait += step.Wait
		at += step.Wait
	}
	if e.KillAfter > 0 {
		parts = append(parts, report.InWords("KILL %s after the first signal, at %s%s", e.KillAfter, kill, latest))
	}
	return strings.Join(parts, ", ")
}

// exitCodes explains --exit-code and the exit codes of the preset.
func (e *explanation) exitCodes() {
	said := map[int]bool{}
	for _, m := range e.ExitCodes {
		after := ""
		if m.Stopped {
			after = " after a stop"
		}
		if !said[m.From] {
			e.say("reports exit code %d as %d%s", m.From, m.To, after)
		}
		said[m.From] = said[m.From] || !m.Stopped
	}
}

// graceNeeded explains which grace period the stop needs: one that was given, or else the
// shortest that is long enough.
func (e *explanation) graceNeeded() {
	needed := e.Grace
	if e.GraceAssumed {
		needed = e.graceFor(e.MaxHold)
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)",
		math.Ceil(needed.Seconds()))
	if e.MaxHold > 0 {
		left := needed - e.MaxHold - e.Schedule.InitialWait() - e.Linger
		if kill, kills := e.Schedule.TimeToEnd(e.KillAfter); kills {
			left = min(left, kill)
		}
		text += report.InWords(": %s for the hold", e.MaxHold)
		if e.Starts[0].Steps.FirstSignal(sig.TERM) != sig.KILL {
			text += report.InWords(", and %s for the command to stop by itself", left)
		}
	}
	if e.GraceAssumed {
		text += report.InWords("; %s is assumed: give --grace-period", e.Grace)
	}
	e.say("%s", text)
}
