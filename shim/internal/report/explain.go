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

// Explain returns a plan in plain words, one sentence a line, in the order of a stop: that of a preStop
// hook, or that of a run.
func Explain(p *plan.Plan, asHook bool) (text string) {
	there := *p
	there.Hook = asHook
	s, e := &Stop{Plan: &there}, phrases{}
	if asHook {
		s.explainHook(&e)
	} else {
		s.explainRun(&e)
	}
	for _, line := range e {
		text += quote.Line(line) + "\n"
	}
	return text
}

// explainHook explains the course of a preStop hook.
func (s *Stop) explainHook(e *phrases) {
	if !s.Holds() {
		e.say("returns at once: nothing to wait for; give --delay or --until")
		return
	}
	s.explainPreset(e)
	s.explainHold(e, "as a preStop hook: waits", "TERM or INT ends the wait at once")
	if s.Stop.SequenceWithoutHold {
		e.say("  then %s, to PID 1, or to what handles it below a PID 1 that does not", s.FirstSteps())
		s.explainKill(e)
		e.say("  then exits with 0 when that has ended, at %s at the latest", s.Stop.Grace-stop.ReportMargin)
	} else {
		e.say("  then exits with 0, and the orchestrator sends the stop signal")
	}
	e.say("where PID 1 is a lameduck that holds by itself: exits with 0 at once")
	s.explainGrace(e)
}

// explainRun explains a run.
func (s *Stop) explainRun(e *phrases) {
	e.add(len(s.Command) > 0, "runs %s", quote.Words(s.Command))
	e.add(s.AliveFile != "", "keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(s.AliveFile))
	if s.Health != nil {
		answer := "answers health checks on %v with 200; %s"
		if s.Health.Target.Port() != 0 {
			answer = "passes health checks through, %v, which do not count as traffic; %s"
		}
		e.say(answer, s.Health, [...]string{
			check.Pass:  "also during a stop",
			check.Fail:  "from the first stop signal on they get 503",
			check.Close: "from the first stop signal on they are refused",
		}[s.HealthDuring])
	}
	for _, r := range s.Rewrites {
		e.add(r.To == 0, "drops %v", r.From)
		e.add(r.To != 0, "sends %v where %v arrives", r.To, r.From)
	}
	s.explainPreset(e)
	if len(s.Starts()) == 0 {
		e.say("no signal starts a stop")
		return
	}
	s.explainStop(e)
	e.add(s.Linger > 0, "when the command has exited: what it leaves behind gets its signal, and KILL %s later", s.Linger)
	for _, m := range s.ExitCodes {
		e.add(!m.Stopped, "reports exit code %d as %d", m.From, m.To)
		counts := s.ExitCode(m.From, true) == m.To // one that was given goes before the preset's
		e.add(m.Stopped && counts, "reports exit code %d as %d after a stop", m.From, m.To)
	}
	if s.Holds() || s.GivenTimes() != "" {
		s.explainGrace(e)
	}
}

// explainPreset explains --preset.
func (s *Stop) explainPreset(e *phrases) {
	known, name := s.Server, s.Preset
	switch {
	case name == "":
		return
	case known.Name == "":
		e.say("preset auto: that of the program that runs when a stop signal arrives")
		return
	case name == preset.Auto:
		name = "auto, probably " + known.Name
	}
	e.say("preset %s, stopped by %s: %s", name, known.Schedule, known.Says)
	e.about(known.Caveat, "  caveat: %s")
}

// explainStop explains the course of a stop.
func (s *Stop) explainStop(e *phrases) {
	begin := "on " + strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Starts()), "[]"), " ", " or ")
	switch {
	case !s.Stop.RunsSequence():
		e.say("%s: passes it on at once; no hold, schedule or preset was asked for", begin)
		s.explainWork(e)
		return
	case s.Holds():
		s.explainHold(e, begin+": keeps serving", "a second stop signal, more than a second later, or INT, ends the hold at once")
	default:
		e.say("%s: does not hold", begin)
	}
	first, orOther := s.FirstSteps(), ""
	if s.Preset == preset.Auto && s.Server.Name == "" && s.Schedule == nil {
		orOther = ", or as the server's preset says, if there is one"
	}
	e.say("  then %s%s", first, orOther)
	for _, start := range s.Starts() {
		steps := s.Stop.ScheduleFor(start)
		e.add(!slices.Equal(steps, first), "  if %v came: %s", start, steps)
	}
	e.add(s.Server.Name != "" && !s.Group && !s.Session,
		"  to %s itself, also where it runs behind a shell or another init", s.Server.Name)
	if s.explainKill(e) {
		return
	}
	s.explainWork(e)
	e.say("  does not send KILL; the orchestrator does, at %s", graceInWords(s.Plan))
}

// explainKill explains when KILL is sent, unless that is after forever, and reports whether lameduck sends it.
func (s *Stop) explainKill(e *phrases) (kills bool) {
	steps := s.FirstSteps()
	kill, kills := steps.TimeToEnd(s.KillAfter)
	e.add(kills, "  sends KILL at %s at the latest", s.Stop.Gate.MaxHold()+steps.InitialWait()+kill)
	return kills || steps.Kills()
}

// explainWork explains what becomes of the processes that the command leaves behind at a stop.
func (s *Stop) explainWork(e *phrases) {
	e.add(s.Stop.AwaitWork, "  waits for what the command leaves behind and handles its signal, to %s at the latest",
		s.Stop.Grace-stop.ReportMargin)
}

// explainHold explains the hold, which begin describes ("keeps serving"), what happens beside it, and
// its early end.
func (s *Stop) explainHold(e *phrases, begin, endsEarly string) {
	silence := s.Traffic.QuietFor
	condition := map[stop.Reason]string{
		stop.Settled: "no new connection has come for %s",
		stop.Quiet:   "nobody has connected or sent a byte for %s and no request is in flight",
		stop.Drained: "nobody has connected or sent a byte for %s and no connection is open",
	}[s.Until]
	if condition != "" {
		condition = InWords(condition, silence)
	}
	e.say("%s for %s", begin, s.hold(condition))
	e.add(s.OnStop.Request != nil, "  meanwhile sends %v", s.OnStop.Request)
	e.add(len(s.OnStop.Command) > 0, "  meanwhile runs %s", quote.Words(s.OnStop.Command))
	told := s.Stop.Tell
	e.add(told != 0, "  at its beginning sends %v to %s, only to processes that handle %[1]v", told, s.Recipient())
	e.say("  %s", endsEarly)
	e.add(condition != "" && s.Probes == traffic.IgnoreProbesPatiently,
		"  what looks like a health probe is left out once all other traffic has been silent for %s", silence)
	e.add(s.CloseIdle, "  when no new connection has come for a second: "+
		"closes the clients' kept connections while they are idle")
	var where phrases
	isAuto := func(port uint16) bool { return port == letgo.Auto }
	named := slices.DeleteFunc(slices.Clone(s.Letgo.Goaway), isAuto)
	where.add(len(named) < len(s.Letgo.Goaway), "alone")
	where.about(PortList(named), "on port %s")
	e.about(strings.Join(where, " or "), "  asks the server of each kept connection what it speaks, and sends its "+
		"clients GOAWAY when no new connection has come for a second, where that is HTTP/2 %s")
	longest := traffic.KeptFor * silence
	e.add(s.Until == stop.Quiet && longest < s.Stop.Gate.MaxHold(),
		"  clients that keep their connections prolong the hold to %s after the last new connection", longest)
}

// explainGrace explains which grace period the stop needs: one that was given, or else the
// shortest that is long enough.
func (s *Stop) explainGrace(e *phrases) {
	needed, longest := s.Stop.Grace, s.Stop.Gate.MaxHold()
	if s.AssumedFrom != "" {
		needed = s.GraceFor(longest)
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)",
		math.Ceil(needed.Seconds()))
	if longest > 0 {
		left := needed - longest - s.Schedule.InitialWait() - s.Linger
		if kill, kills := s.FirstSteps().TimeToEnd(s.KillAfter); kills {
			left = kill
		}
		text += InWords(": %s for the hold, and %s for the command to stop by itself", longest, left)
	}
	if s.AssumedFrom != "" {
		text += InWords("; %s is assumed: give --grace-period", s.Stop.Grace)
	}
	e.say("%s", text)
}
