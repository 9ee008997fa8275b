package shim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Explain returns what would happen at a stop, in plain words, one sentence a line, and the
// warnings of the configuration. An error is a contradiction in the configuration that Run
// would find as well. Explain does not look at the machine (directories, ports, programs, a
// terminal), because pod specs are reviewed elsewhere.
func Explain(cfg Config) (text string, warnings []string, err error) {
	p, err := newPlan(&cfg, false, true)
	if err != nil {
		return "", nil, err
	}
	if likely := preset.MatchCommand(cfg.Command); p.server.auto && likely != nil {
		p.usePreset(likely)
	}
	e := explainer{&p, &cfg}
	lines := e.beforeStop()
	if stops := e.stopSignals(); len(stops) > 0 {
		lines = append(lines, e.duringStop(stops)...)
		lines = append(lines, e.afterExit()...)
	} else {
		lines = append(lines, "no signal begins a stop")
	}
	return joinLines(lines), p.warnings, nil
}

// ExplainHold is Explain for a preStop hook.
func ExplainHold(cfg Config) (text string, warnings []string, err error) {
	p, err := newPlan(&cfg, false, true)
	if err != nil {
		return "", nil, err
	}
	e := explainer{&p, &cfg}
	return joinLines(e.hook()), p.warnings, nil
}

// joinLines returns lines as a text that is safe to print.
func joinLines(lines []string) string {
	for i, line := range lines {
		lines[i] = quote.Line(line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// hook explains the course of a preStop hook, in order.
func (e explainer) hook() []string {
	if !e.plan.stop.Gate.Holds() {
		return []string{"returns at once: nothing to wait for; give --delay or --until"}
	}
	lines := []string{"as a preStop hook: " + e.hold("waits")}
	lines = append(lines, e.duringHold("TERM or INT ends the wait at once")...)
	return append(lines,
		"  then exits with 0, and the orchestrator sends the stop signal",
		"where PID 1 is a lameduck that holds by itself: exits with 0 at once",
		e.graceNeeded())
}

// explainer puts a plan into words.
type explainer struct {
	plan *plan
	cfg  *Config
}

// beforeStop explains the time before a stop.
func (e explainer) beforeStop() (lines []string) {
	if len(e.cfg.Command) > 0 {
		lines = append(lines, "runs "+quote.Shell(e.cfg.Command))
	}
	if e.cfg.AliveFile != "" {
		lines = append(lines, fmt.Sprintf("keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(e.cfg.AliveFile)))
	}
	if e.cfg.Health != nil {
		lines = append(lines, e.health())
	}
	if rewrites := e.rewrites(); rewrites != "" {
		lines = append(lines, rewrites)
	}
	if e.cfg.Preset != "" {
		lines = append(lines, "preset "+e.preset())
	}
	return lines
}

// health explains the health listener.
func (e explainer) health() string {
	answer := "answers health checks on %v with 200"
	if e.cfg.Health.Target.Port() != 0 {
		answer = "passes health checks through, %v, which do not count as traffic"
	}
	during := map[HealthMode]string{
		HealthPass:  "also during a stop",
		HealthFail:  "from the first stop signal on they get 503",
		HealthClose: "from the first stop signal on they are refused",
	}
	return fmt.Sprintf(answer, e.cfg.Health) + "; " + during[e.cfg.HealthDuring]
}

// rewrites explains --rewrite.
func (e explainer) rewrites() string {
	var rewrites []string
	for _, r := range e.cfg.Rewrites {
		if r.To == 0 {
			rewrites = append(rewrites, fmt.Sprintf("drops %v", r.From))
		} else {
			rewrites = append(rewrites, fmt.Sprintf("sends %v where %v arrives", r.To, r.From))
		}
	}
	return strings.Join(rewrites, ", ")
}

// preset explains --preset.
func (e explainer) preset() string {
	found := e.plan.server.preset
	text := e.cfg.Preset
	switch {
	case text != AutoPreset:
	case found == nil:
		return "auto: that of the program that runs when a stop signal arrives"
	default:
		text = "auto, probably " + found.Name
	}
	if found.Schedule != "" {
		text += ", stopped by " + found.Schedule
	}
	return text + ": " + found.Says
}

// stopSignals returns the signals that begin a stop, TERM first.
func (e explainer) stopSignals() (stops []sig.Signal) {
	for s := range e.plan.stop.StopSignals.All {
		if _, passes := e.plan.stop.Rewrites.Of(s); passes {
			stops = append(stops, s)
		}
	}
	if i := slices.Index(stops, sig.TERM); i > 0 {
		copy(stops[1:], stops[:i])
		stops[0] = sig.TERM
	}
	return stops
}

// duringStop explains the course of a stop, in order.
func (e explainer) duringStop(stops []sig.Signal) (lines []string) {
	var names []string
	for _, s := range stops {
		names = append(names, s.String())
	}
	begin := "on " + orList(names) + ": "
	holds := e.plan.stop.Gate.Holds()
	switch {
	case !holds && !e.plan.stop.SequenceWithoutHold:
		return []string{begin + "passes it on at once; no hold, schedule or preset was asked for"}
	case !holds:
		lines = append(lines, begin+"does not hold")
	default:
		lines = append(lines, begin+e.hold("keeps serving"))
	}
	if holds {
		lines = append(lines, e.duringHold("a second stop signal, more than a second later, or INT, ends the hold at once")...)
	}
	first := e.plan.stop.ScheduleFor(stops[0])
	lines = append(lines, "  then "+e.steps(first))
	for _, s := range stops[1:] {
		if other := e.plan.stop.ScheduleFor(s); !slices.Equal(other, first) {
			lines = append(lines, fmt.Sprintf("  if %v came: %v", s, other))
		}
	}
	if e.cfg.KillAfter == 0 && !slices.ContainsFunc(e.cfg.Schedule, func(s Step) bool { return s.Signal == sig.KILL }) {
		lines = append(lines, fmt.Sprintf("  sends no KILL: that is the orchestrator's, at %s", e.grace()))
	}
	return lines
}

// duringHold explains the events beside a hold, and the early end of a hold.
func (e explainer) duringHold(endsEarly string) (lines []string) {
	if len(e.cfg.OnStop) > 0 {
		lines = append(lines, "  meanwhile runs "+quote.Shell(e.cfg.OnStop))
	}
	lines = append(lines, "  "+endsEarly)
	if probes := e.probes(); probes != "" {
		lines = append(lines, "  "+probes)
	}
	if kept := e.kept(); kept != "" {
		lines = append(lines, "  "+kept)
	}
	return lines
}

// hold explains the hold. The verb describes a hold: "keeps serving".
func (e explainer) hold(verb string) string {
	gate := &e.plan.stop.Gate
	var until []string
	silence := stop.FormatDuration(e.plan.traffic.QuietFor)
	switch gate.Until {
	case Settled:
		until = append(until, "no new connection has come for "+silence)
	case Quiet:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no request is in flight")
	case Drained:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no connection is open")
	}
	for _, path := range e.cfg.WaitGone {
		until = append(until, quote.Word(path)+" is gone")
	}
	if gate.OnStop {
		until = append(until, "--on-stop has ended")
	}
	conditions := strings.Join(until, ", and ")
	switch {
	case len(until) == 0:
		return verb + " for " + stop.FormatDuration(gate.Floor)
	case gate.Floor > 0:
		return fmt.Sprintf("%s at least %s, until %s, at most %s", verb, stop.FormatDuration(gate.Floor), conditions, stop.FormatDuration(gate.Ceiling))
	}
	return fmt.Sprintf("%s until %s, at most %s", verb, conditions, stop.FormatDuration(gate.Ceiling))
}

// probes explains the rule for health probes, "" if traffic does not end the hold.
func (e explainer) probes() string {
	const subject = "what looks like a health probe "
	switch {
	case e.cfg.Until == Elapsed:
		return ""
	case e.cfg.Probes == IgnoreProbes:
		return subject + "is left out at once"
	case e.cfg.Probes == CountProbes:
		return subject + "counts"
	}
	return subject + "is left out once all other traffic has been silent for " + stop.FormatDuration(e.plan.traffic.QuietFor)
}

// kept explains the end of a hold among clients that never let go, or returns "".
func (e explainer) kept() string {
	longest := traffic.KeptFor * e.plan.traffic.QuietFor
	if gate := &e.plan.stop.Gate; gate.Until != Quiet || longest >= gate.Ceiling {
		return ""
	}
	return "clients that keep their connections prolong the hold to " + stop.FormatDuration(longest) + " after the last new connection"
}

// steps explains the signals after the hold, and the latest time of KILL.
func (e explainer) steps(schedule Schedule) string {
	after := e.plan.stop.KillAfter
	var parts []string
	var wait time.Duration // since the previous signal
	at := e.plan.stop.Gate.MaxHold()
	for i, step := range schedule {
		if step.Forever {
			parts = append(parts, fmt.Sprintf("%s%v, repeated forever", later(wait), schedule[i+1:]))
			break
		}
		switch {
		case step.Signal == 0:
			wait += step.Wait
			at += step.Wait
		default:
			parts = append(parts, fmt.Sprintf("%s%v%s", later(wait), step.Signal, e.latestKill(step, at)))
			wait = 0
		}
	}
	if after > 0 {
		at := e.plan.stop.Gate.MaxHold() + schedule.InitialWait() + after
		parts = append(parts, fmt.Sprintf("KILL %s after the first signal%s", stop.FormatDuration(after), e.latestKill(Step{Signal: sig.KILL}, at)))
	}
	return strings.Join(parts, ", ")
}

// later returns the words before a signal that follows another one.
func later(wait time.Duration) string {
	if wait == 0 {
		return ""
	}
	return stop.FormatDuration(wait) + " later "
}

// latestKill returns the words after a KILL that say when KILL is sent, "" for other steps.
func (e explainer) latestKill(step Step, at time.Duration) string {
	gate := &e.plan.stop.Gate
	switch {
	case step.Signal != sig.KILL:
		return ""
	case gate.Until != Elapsed || gate.WaitGone || gate.OnStop:
		return fmt.Sprintf(", at %s at the latest", stop.FormatDuration(at))
	}
	return fmt.Sprintf(", at %s", stop.FormatDuration(at))
}

// afterExit explains the time after the exit of the command, and the grace period that the
// orchestrator has to give.
func (e explainer) afterExit() (lines []string) {
	if e.cfg.Linger > 0 {
		lines = append(lines, fmt.Sprintf("when the command has exited: TERM to its remaining descendants, and KILL %s later", stop.FormatDuration(e.cfg.Linger)))
	}
	if codes := e.exitCodes(); codes != "" {
		lines = append(lines, "reports exit code "+codes)
	}
	if e.plan.stop.Gate.Holds() || e.cfg.Schedule != nil || e.cfg.KillAfter > 0 || e.cfg.Linger > 0 {
		lines = append(lines, e.graceNeeded())
	}
	return lines
}

// exitCodes explains --exit-code and the exit codes of the preset.
func (e explainer) exitCodes() string {
	var codes []string
	for from, to := range e.plan.exits {
		codes = append(codes, fmt.Sprintf("%d as %d", from, to))
	}
	if e.plan.server.preset != nil {
		for _, m := range e.plan.server.preset.Exit {
			if _, given := e.plan.exits[m.From]; !given {
				codes = append(codes, fmt.Sprintf("%d as %d after a stop", m.From, m.To))
			}
		}
	}
	slices.Sort(codes)
	return strings.Join(codes, ", ")
}

// graceNeeded explains which grace period the stop needs.
func (e explainer) graceNeeded() string {
	hold := e.plan.stop.Gate.MaxHold()
	needed := e.plan.stop.Grace
	if e.plan.grace.assumed {
		needed = e.cfg.graceFor(hold)
	}
	text := fmt.Sprintf("your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)", math.Ceil(needed.Seconds()))
	if hold > 0 {
		left := needed - hold - e.cfg.Schedule.InitialWait() - e.cfg.Linger
		text += fmt.Sprintf(": %s for the hold, and %s for the command to stop by itself", stop.FormatDuration(hold), stop.FormatDuration(left))
	}
	if e.plan.grace.assumed {
		text += fmt.Sprintf("; %s is assumed: give --grace-period", stop.FormatDuration(e.plan.stop.Grace))
	}
	return text
}

// grace returns the grace period in words.
func (e explainer) grace() string {
	if e.plan.grace.assumed {
		return stop.FormatDuration(e.plan.stop.Grace) + ", assumed (--grace-period)"
	}
	return stop.FormatDuration(e.plan.stop.Grace)
}

// orList joins words with commas and an "or".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
