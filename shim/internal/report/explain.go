package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/shim/internal/check"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Explain returns a plan in plain words, one sentence a line: that of a preStop hook, or that of a run.
func Explain(p *plan.Plan, asHook bool) (text string) {
	there := *p
	there.Hook = asHook
	e := explanation{Plan: &there}
	if asHook {
		e.hook()
	} else {
		e.run()
	}
	for _, line := range e.phrases {
		text += quote.Line(line) + "\n"
	}
	return text
}

// explanation is a plan in words, line by line, in the order of a stop.
type explanation struct {
	*plan.Plan
	phrases
}

// hook explains the course of a preStop hook.
func (e *explanation) hook() {
	if !e.Holds() {
		e.put(true, "returns at once: nothing to wait for; give --delay or --until")
		return
	}
	e.preset()
	e.hold("as a preStop hook: waits", "TERM or INT ends the wait at once")
	if e.Stop.SequenceWithoutHold {
		e.add(true, "  then %s, to PID 1, or to what handles it below a PID 1 that does not", e.FirstSteps())
		e.kill()
		e.add(true, "  then exits with 0 when that has ended, at %s at the latest", e.Stop.Grace-stop.ReportMargin)
	} else {
		e.put(true, "  then exits with 0, and the orchestrator sends the stop signal")
	}
	e.put(true, "where PID 1 is a lameduck that holds by itself: exits with 0 at once")
	e.graceNeeded()
}

// run explains a run.
func (e *explanation) run() {
	e.add(len(e.Command) > 0, "runs %s", quote.Words(e.Command))
	e.add(e.AliveFile != "", "keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(e.AliveFile))
	e.health()
	for _, r := range e.Rewrites {
		e.add(r.To == 0, "drops %v", r.From)
		e.add(r.To != 0, "sends %v where %v arrives", r.To, r.From)
	}
	e.preset()
	if len(e.Starts()) == 0 {
		e.put(true, "no signal starts a stop")
		return
	}
	e.duringStop()
	e.add(e.Linger > 0, "when the command has exited: what it leaves behind gets its signal, and KILL %s later", e.Linger)
	for _, m := range e.ExitCodes {
		e.add(!m.Stopped, "reports exit code %d as %d", m.From, m.To)
		counts := e.ExitCode(m.From, true) == m.To // one that was given goes before the preset's
		e.add(m.Stopped && counts, "reports exit code %d as %d after a stop", m.From, m.To)
	}
	if e.Holds() || e.GivenTimes() != "" {
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
	e.add(true, answer, e.Health, [...]string{
		check.Pass:  "also during a stop",
		check.Fail:  "from the first stop signal on they get 503",
		check.Close: "from the first stop signal on they are refused",
	}[e.HealthDuring])
}

// preset explains --preset.
func (e *explanation) preset() {
	known, name := e.Server, e.Preset
	switch {
	case name == "":
		return
	case known.Name == "":
		e.put(true, "preset auto: that of the program that runs when a stop signal arrives")
		return
	case name == preset.Auto:
		name = "auto, probably " + known.Name
	}
	e.add(true, "preset %s, stopped by %s: %s", name, known.Schedule, known.Says)
	e.add(known.Caveat != "", "  caveat: %s", known.Caveat)
}

// duringStop explains the course of a stop.
func (e *explanation) duringStop() {
	var names []string
	for _, start := range e.Starts() {
		names = append(names, start.String())
	}
	begin := "on " + strings.Join(names, " or ")
	switch {
	case !e.Stop.RunsSequence():
		e.add(true, "%s: passes it on at once; no hold, schedule or preset was asked for", begin)
		e.awaitWork()
		return
	case e.Holds():
		e.hold(begin+": keeps serving", "a second stop signal, more than a second later, or INT, ends the hold at once")
	default:
		e.add(true, "%s: does not hold", begin)
	}
	first, orOther := e.FirstSteps(), ""
	if e.Preset == preset.Auto && e.Server.Name == "" && e.Schedule == nil {
		orOther = ", or as the server's preset says, if there is one"
	}
	e.add(true, "  then %s%s", first, orOther)
	for _, start := range e.Starts() {
		steps := e.Stop.ScheduleFor(start)
		e.add(!slices.Equal(steps, first), "  if %v came: %s", start, steps)
	}
	e.add(e.Server.Name != "" && !e.Group && !e.Session,
		"  to %s itself, also where it runs behind a shell or another init", e.Server.Name)
	if e.kill() {
		return
	}
	e.awaitWork()
	e.add(true, "  does not send KILL; the orchestrator does, at %s", graceInWords(e.Stop.Grace, e.AssumedFrom != ""))
}

// kill explains when KILL is sent, unless that is after forever, and reports whether lameduck sends it.
func (e *explanation) kill() (kills bool) {
	steps := e.FirstSteps()
	kill, kills := steps.TimeToEnd(e.KillAfter)
	e.add(kills, "  sends KILL at %s at the latest", e.Stop.Gate.MaxHold()+steps.InitialWait()+kill)
	return kills || steps.Kills()
}

// awaitWork explains what becomes of the processes that the command leaves behind at a stop.
func (e *explanation) awaitWork() {
	e.add(e.Stop.AwaitWork, "  waits for what the command leaves behind and handles its signal, to %s at the latest",
		e.Stop.Grace-stop.ReportMargin)
}

// hold explains the hold, which begin describes ("keeps serving"), what happens beside it, and
// its early end.
func (e *explanation) hold(begin, endsEarly string) {
	silence := e.Traffic.QuietFor
	condition := map[stop.Reason]string{
		stop.Settled: "no new connection has come for %s",
		stop.Quiet:   "nobody has connected or sent a byte for %s and no request is in flight",
		stop.Drained: "nobody has connected or sent a byte for %s and no connection is open",
	}[e.Until]
	if condition != "" {
		condition = InWords(condition, silence)
	}
	e.add(true, "%s for %s", begin, hold(e.Plan, condition))
	e.add(e.OnStop.Request != nil, "  meanwhile sends %v", e.OnStop.Request)
	e.add(len(e.OnStop.Command) > 0, "  meanwhile runs %s", quote.Words(e.OnStop.Command))
	told := e.Stop.Tell
	e.add(told != 0, "  at its beginning sends %v to %s, only to processes that handle %[1]v", told, e.Told())
	e.add(true, "  %s", endsEarly)
	e.add(condition != "" && e.Probes == traffic.IgnoreProbesPatiently,
		"  what looks like a health probe is left out once all other traffic has been silent for %s", silence)
	e.put(e.CloseIdle, "  when no new connection has come for a second: "+
		"closes the clients' kept connections while they are idle")
	e.add(len(e.Letgo.Goaway) > 0, "  asks the server of each kept connection what it speaks, and sends its clients "+
		"GOAWAY when no new connection has come for a second, where that is HTTP/2 %s", goawayWhere(e.Letgo.Goaway))
	longest := traffic.KeptFor * silence
	e.add(e.Until == stop.Quiet && longest < e.Stop.Gate.MaxHold(),
		"  clients that keep their connections prolong the hold to %s after the last new connection", longest)
}

// goawayWhere explains the ports of --goaway.
func goawayWhere(ports []uint16) string {
	isAuto := func(port uint16) bool { return port == letgo.Auto }
	var where phrases
	where.put(slices.ContainsFunc(ports, isAuto), "alone")
	named := slices.DeleteFunc(slices.Clone(ports), isAuto)
	where.add(len(named) > 0, "on port %s", PortList(named))
	return strings.Join(where, " or ")
}

// graceNeeded explains which grace period the stop needs: one that was given, or else the
// shortest that is long enough.
func (e *explanation) graceNeeded() {
	needed, longest := e.Stop.Grace, e.Stop.Gate.MaxHold()
	if e.AssumedFrom != "" {
		needed = e.GraceFor(longest)
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)",
		math.Ceil(needed.Seconds()))
	if longest > 0 {
		left := needed - longest - e.Schedule.InitialWait() - e.Linger
		if kill, kills := e.FirstSteps().TimeToEnd(e.KillAfter); kills {
			left = kill
		}
		text += InWords(": %s for the hold, and %s for the command to stop by itself", longest, left)
	}
	if e.AssumedFrom != "" {
		text += InWords("; %s is assumed: give --grace-period", e.Stop.Grace)
	}
	e.put(true, text)
}
