package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Explain returns the outline in plain words, one sentence a line: that of a preStop hook, or
// that of a run.
func (o *Outline) Explain(asHook bool) string {
	p := *o.Plan
	p.Hook = asHook
	e := explanation{Outline: *o}
	e.Plan = &p
	if asHook {
		e.hook()
	} else {
		e.run()
	}
	return e.text
}

// explanation is an outline in words, line by line, in the order of a stop.
type explanation struct {
	Outline
	text string
}

// say adds a line if it applies.
func (e *explanation) say(applies bool, format string, args ...any) {
	if applies {
		e.text += quote.Line(report.InWords(format, args...)) + "\n"
	}
}

// hook explains the course of a preStop hook.
func (e *explanation) hook() {
	if !e.Holds() {
		e.say(true, "returns at once: nothing to wait for; give --delay or --until")
		return
	}
	e.preset()
	e.hold("as a preStop hook: waits", "TERM or INT ends the wait at once")
	if e.Stop.SequenceWithoutHold {
		e.say(true, "  then %s, to PID 1, or to what handles it below a PID 1 that does not", e.Starts[0].Steps)
		e.kill()
		e.say(true, "  then exits with 0 when that has ended, at %s at the latest", e.Grace-stop.ReportMargin)
	} else {
		e.say(true, "  then exits with 0, and the orchestrator sends the stop signal")
	}
	e.say(true, "where PID 1 is a lameduck that holds by itself: exits with 0 at once")
	e.graceNeeded()
}

// run explains a run.
func (e *explanation) run() {
	e.say(len(e.Command) > 0, "runs %s", quote.Words(e.Command))
	e.say(e.AliveFile != "", "keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(e.AliveFile))
	e.health()
	for _, r := range e.Rewrites {
		e.say(r.To == 0, "drops %v", r.From)
		e.say(r.To != 0, "sends %v where %v arrives", r.To, r.From)
	}
	e.preset()
	if len(e.Starts) == 0 {
		e.say(true, "no signal starts a stop")
		return
	}
	e.duringStop()
	e.say(e.Linger > 0, "when the command has exited: what it leaves behind gets its signal, and KILL %s later", e.Linger)
	for _, m := range e.ExitCodes {
		e.say(!m.Stopped, "reports exit code %d as %d", m.From, m.To)
		counts := e.ExitCode(m.From, true) == m.To // one that was given goes before the preset's
		e.say(m.Stopped && counts, "reports exit code %d as %d after a stop", m.From, m.To)
	}
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
	e.say(true, answer, e.Health, [...]string{
		check.Pass:  "also during a stop",
		check.Fail:  "from the first stop signal on they get 503",
		check.Close: "from the first stop signal on they are refused",
	}[e.HealthDuring])
}

// preset explains --preset.
func (e *explanation) preset() {
	known, name := e.Server, e.Config.Preset
	switch {
	case name == "":
		return
	case known == nil:
		e.say(true, "preset auto: that of the program that runs when a stop signal arrives")
		return
	case name == preset.Auto:
		name = "auto, probably " + known.Name
	}
	e.say(true, "preset %s, stopped by %s: %s", name, known.Schedule, known.Says)
	e.say(known.Caveat != "", "  caveat: %s", known.Caveat)
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
		e.say(true, "%s: passes it on at once; no hold, schedule or preset was asked for", begin)
		e.awaitWork()
		return
	case e.Holds():
		e.hold(begin+": keeps serving", "a second stop signal, more than a second later, or INT, ends the hold at once")
	default:
		e.say(true, "%s: does not hold", begin)
	}
	first, orOther := e.Starts[0].Steps, ""
	if e.Config.Preset == preset.Auto && e.Server == nil && e.Schedule == nil {
		orOther = ", or as the server's preset says, if there is one"
	}
	e.say(true, "  then %s%s", first, orOther)
	for _, start := range e.Starts[1:] {
		e.say(!slices.Equal(start.Steps, first), "  if %v came: %s", start.Signal, start.Steps)
	}
	if e.Server != nil && !e.Group && !e.Session {
		e.say(true, "  to %s itself, also where it runs behind a shell or another init", e.Server.Name)
	}
	if e.kill() {
		return
	}
	e.awaitWork()
	assumed := ""
	if e.GraceAssumed {
		assumed = " (assumed)"
	}
	e.say(true, "  does not send KILL; the orchestrator does, at %s%s", e.Grace, assumed)
}

// kill explains when KILL is sent, unless that is after forever, and reports whether lameduck sends it.
func (e *explanation) kill() (kills bool) {
	steps := e.Starts[0].Steps
	kill, kills := steps.TimeToEnd(e.KillAfter)
	e.say(kills, "  sends KILL at %s at the latest", e.MaxHold+steps.InitialWait()+kill)
	return kills || steps.Kills()
}

// awaitWork explains what becomes of the processes that the command leaves behind at a stop.
func (e *explanation) awaitWork() {
	e.say(e.Stop.AwaitWork, "  waits for what the command leaves behind and handles its signal, to %s at the latest",
		e.Grace-stop.ReportMargin)
}

// hold explains the hold, which begin describes ("keeps serving"), what happens beside it, and
// its early end.
func (e *explanation) hold(begin, endsEarly string) {
	silence, adaptive := e.Traffic.QuietFor, e.Until != Elapsed
	condition := ""
	if adaptive {
		condition = report.InWords(map[stop.Reason]string{
			stop.Settled: "no new connection has come for %s",
			stop.Quiet:   "nobody has connected or sent a byte for %s and no request is in flight",
			stop.Drained: "nobody has connected or sent a byte for %s and no connection is open",
		}[e.Until], silence)
	}
	e.say(true, "%s for %s", begin, e.Terms.Hold(condition))
	e.say(e.OnStop.Request != nil, "  meanwhile sends %v", e.OnStop.Request)
	e.say(len(e.OnStop.Command) > 0, "  meanwhile runs %s", quote.Words(e.OnStop.Command))
	told := e.Stop.Tell
	e.say(told != 0, "  at its beginning sends %v to %s, only to processes that handle %[1]v", told, e.Told())
	e.say(true, "  %s", endsEarly)
	e.say(adaptive && e.Probes == traffic.IgnoreProbesPatiently,
		"  what looks like a health probe is left out once all other traffic has been silent for %s", silence)
	e.say(e.CloseIdle, "  when no new connection has come for a second: "+
		"closes the clients' kept connections while they are idle")
	e.say(len(e.Letgo.Goaway) > 0, "  asks the server of each kept connection what it speaks, and sends its clients "+
		"GOAWAY when no new connection has come for a second, where that is HTTP/2 %s", goawayWhere(e.Letgo.Goaway))
	longest := traffic.KeptFor * silence
	e.say(e.Until == stop.Quiet && longest < e.MaxHold,
		"  clients that keep their connections prolong the hold to %s after the last new connection", longest)
}

// goawayWhere explains the ports of --goaway.
func goawayWhere(ports []uint16) string {
	var where []string
	if slices.Contains(ports, letgo.Auto) {
		where = append(where, "alone")
	}
	if named := slices.DeleteFunc(slices.Clone(ports), func(port uint16) bool { return port == letgo.Auto }); len(named) > 0 {
		where = append(where, "on port "+report.PortList(named))
	}
	return strings.Join(where, " or ")
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
		if kill, kills := e.Starts[0].Steps.TimeToEnd(e.KillAfter); kills {
			left = kill
		}
		text += report.InWords(": %s for the hold, and %s for the command to stop by itself", e.MaxHold, left)
	}
	if e.GraceAssumed {
		text += report.InWords("; %s is assumed: give --grace-period", e.Grace)
	}
	e.say(true, "%s", text)
}
