package shim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Explain returns the outline of a configuration in plain words, one sentence a line, and the
// warnings of the configuration. The error is that of NewOutline.
func Explain(cfg Config) (text string, warnings []string, err error) {
	return explainBy((*Outline).lines, cfg)
}

// ExplainHold is Explain for a preStop hook.
func ExplainHold(cfg Config) (text string, warnings []string, err error) {
	return explainBy((*Outline).hookLines, cfg)
}

func explainBy(lines func(*Outline) []string, cfg Config) (text string, warnings []string, err error) {
	o, err := NewOutline(cfg)
	if err != nil {
		return "", nil, err
	}
	for _, line := range lines(o) {
		text += quote.Line(line) + "\n"
	}
	return text, o.Warnings, nil
}

// hookLines explains the course of a preStop hook, in order.
func (o *Outline) hookLines() []string {
	if !o.Holds {
		return []string{"returns at once: nothing to wait for; give --delay or --until"}
	}
	lines := []string{"as a preStop hook: " + o.hold("waits")}
	lines = append(lines, o.duringHold("TERM or INT ends the wait at once")...)
	return append(lines,
		"  then exits with 0, and the orchestrator sends the stop signal",
		"where PID 1 is a lameduck that holds by itself: exits with 0 at once",
		o.graceNeeded())
}

// lines explains a run, in order.
func (o *Outline) lines() (lines []string) {
	cfg := &o.Config
	if len(cfg.Command) > 0 {
		lines = append(lines, "runs "+quote.Shell(cfg.Command))
	}
	if cfg.AliveFile != "" {
		lines = append(lines, fmt.Sprintf(
			"keeps %s locked while the command runs, for neighbors that wait for it", quote.Word(cfg.AliveFile)))
	}
	if cfg.Health != nil {
		lines = append(lines, o.health())
	}
	if len(cfg.Rewrites) > 0 {
		lines = append(lines, o.rewrites())
	}
	if cfg.Preset != "" {
		lines = append(lines, "preset "+o.preset())
		if o.Preset != nil && o.Preset.Caveat != "" {
			lines = append(lines, "  caveat: "+o.Preset.Caveat)
		}
	}
	if len(o.Starts) == 0 {
		return append(lines, "no signal begins a stop")
	}
	lines = append(lines, o.duringStop()...)
	if cfg.Linger > 0 {
		lines = append(lines, fmt.Sprintf(
			"when the command has exited: TERM to its remaining descendants, and KILL %s later",
			stop.FormatDuration(cfg.Linger)))
	}
	if len(o.ExitCodes) > 0 {
		lines = append(lines, "reports exit code "+o.exitCodes())
	}
	if o.Holds || cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Linger > 0 {
		lines = append(lines, o.graceNeeded())
	}
	return lines
}

// health explains the health listener.
func (o *Outline) health() string {
	answer := "answers health checks on %v with 200"
	if o.Config.Health.Target.Port() != 0 {
		answer = "passes health checks through, %v, which do not count as traffic"
	}
	during := map[HealthMode]string{
		HealthPass:  "also during a stop",
		HealthFail:  "from the first stop signal on they get 503",
		HealthClose: "from the first stop signal on they are refused",
	}
	return fmt.Sprintf(answer, o.Config.Health) + "; " + during[o.Config.HealthDuring]
}

// rewrites explains --rewrite.
func (o *Outline) rewrites() string {
	var rewrites []string
	for _, r := range o.Config.Rewrites {
		if r.To == 0 {
			rewrites = append(rewrites, fmt.Sprintf("drops %v", r.From))
		} else {
			rewrites = append(rewrites, fmt.Sprintf("sends %v where %v arrives", r.To, r.From))
		}
	}
	return strings.Join(rewrites, ", ")
}

// preset explains --preset.
func (o *Outline) preset() string {
	text := o.Config.Preset
	switch {
	case o.Preset == nil:
		return "auto: that of the program that runs when a stop signal arrives"
	case text == AutoPreset:
		text = "auto, probably " + o.Preset.Name
	}
	return text + ", stopped by " + o.Preset.Schedule + ": " + o.Preset.Says
}

// duringStop explains the course of a stop, in order.
func (o *Outline) duringStop() (lines []string) {
	var names []string
	for _, start := range o.Starts {
		names = append(names, start.Signal.String())
	}
	begin := "on " + orList(names) + ": "
	switch {
	case !o.Sequence:
		return []string{begin + "passes it on at once; no hold, schedule or preset was asked for"}
	case !o.Holds:
		lines = append(lines, begin+"does not hold")
	default:
		lines = append(lines, begin+o.hold("keeps serving"))
		lines = append(lines, o.duringHold(
			"a second stop signal, more than a second later, or INT, ends the hold at once")...)
	}
	first := o.Starts[0].Steps
	lines = append(lines, "  then "+o.steps(first))
	for _, start := range o.Starts[1:] {
		if !slices.Equal(start.Steps, first) {
			lines = append(lines, fmt.Sprintf("  if %v came: %v", start.Signal, start.Steps))
		}
	}
	if o.Config.KillAfter == 0 && !o.Config.Schedule.Kills() {
		at := stop.FormatDuration(o.Grace)
		if o.GraceAssumed {
			at += ", assumed (--grace-period)"
		}
		lines = append(lines, "  sends no KILL: that is the orchestrator's, at "+at)
	}
	return lines
}

// duringHold explains the events beside a hold, and the early end of a hold.
func (o *Outline) duringHold(endsEarly string) (lines []string) {
	if len(o.Config.OnStop) > 0 {
		lines = append(lines, "  meanwhile runs "+quote.Shell(o.Config.OnStop))
	}
	lines = append(lines, "  "+endsEarly)
	const subject = "  what looks like a health probe "
	switch {
	case o.Config.Until == Elapsed:
	case o.Config.Probes == IgnoreProbes:
		lines = append(lines, subject+"is left out at once")
	case o.Config.Probes == CountProbes:
		lines = append(lines, subject+"counts")
	default:
		lines = append(lines, subject+
			"is left out once all other traffic has been silent for "+stop.FormatDuration(o.Silence))
	}
	if o.MaxKept > 0 {
		lines = append(lines,
			"  clients that keep their connections prolong the hold to "+
				stop.FormatDuration(o.MaxKept)+" after the last new connection")
	}
	return lines
}

// hold explains the hold. The verb describes a hold: "keeps serving".
func (o *Outline) hold(verb string) string {
	var until []string
	silence := stop.FormatDuration(o.Silence)
	switch o.Config.Until {
	case Settled:
		until = append(until, "no new connection has come for "+silence)
	case Quiet:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no request is in flight")
	case Drained:
		until = append(until, "nobody has connected or sent a byte for "+silence+" and no connection is open")
	}
	for _, path := range o.Config.WaitGone {
		until = append(until, quote.Word(path)+" is gone")
	}
	if len(o.Config.OnStop) > 0 {
		until = append(until, "--on-stop has ended")
	}
	longest := stop.FormatDuration(o.MaxHold)
	if len(until) == 0 {
		return verb + " for " + longest
	}
	if o.Config.Delay > 0 {
		verb += " at least " + stop.FormatDuration(o.Config.Delay) + ","
	}
	return fmt.Sprintf("%s until %s, at most %s", verb, strings.Join(until, ", and "), longest)
}

// steps explains the signals after the hold, and the latest time of KILL.
func (o *Outline) steps(schedule Schedule) string {
	var parts []string
	var wait time.Duration // since the previous signal
	at := o.MaxHold
	for i, step := range schedule {
		if step.Forever {
			parts = append(parts, fmt.Sprintf("%s%v, repeated forever", later(wait), schedule[i+1:]))
			break
		}
		if step.Signal == 0 {
			wait += step.Wait
			at += step.Wait
			continue
		}
		part := later(wait) + step.Signal.String()
		if step.Signal == sig.KILL {
			part += o.latest(at)
		}
		parts = append(parts, part)
		wait = 0
	}
	if after := o.Config.KillAfter; after > 0 {
		at := o.MaxHold + schedule.InitialWait() + after
		parts = append(parts, "KILL "+stop.FormatDuration(after)+" after the first signal"+o.latest(at))
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

// latest returns the words after a KILL that say when KILL is sent.
func (o *Outline) latest(at time.Duration) string {
	text := ", at " + stop.FormatDuration(at)
	if o.Config.Until != Elapsed || len(o.Config.WaitGone) > 0 || len(o.Config.OnStop) > 0 {
		text += " at the latest"
	}
	return text
}

// exitCodes explains --exit-code and the exit codes of the preset.
func (o *Outline) exitCodes() string {
	var codes []string
	for _, exit := range o.ExitCodes {
		code := fmt.Sprintf("%d as %d", exit.From, exit.To)
		if exit.AfterStop {
			code += " after a stop"
		}
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return strings.Join(codes, ", ")
}

// graceNeeded explains which grace period the stop needs.
func (o *Outline) graceNeeded() string {
	text := fmt.Sprintf(
		"your pod needs terminationGracePeriodSeconds of %v or more (docker stop -t %[1]v)",
		math.Ceil(o.GraceNeeded.Seconds()))
	if o.MaxHold > 0 {
		text += fmt.Sprintf(
			": %s for the hold, and %s for the command to stop by itself",
			stop.FormatDuration(o.MaxHold), stop.FormatDuration(o.TimeToStop))
	}
	if o.GraceAssumed {
		text += fmt.Sprintf("; %s is assumed: give --grace-period", stop.FormatDuration(o.Grace))
	}
	return text
}

// orList joins words with commas and an "or".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
