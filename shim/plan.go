package shim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Defaults of an adaptive hold, which has no floor unless given.
const (
	defaultQuiet       = 4 * time.Second // or half of the ceiling, if less; shorter than the usual gap between probes
	defaultMaxSilence  = 30 * time.Second
	defaultUnseenFloor = 5 * time.Second // the floor where the traffic cannot be observed
)

// plan is a [Config] with defaults filled in and contradictions refused.
type plan struct {
	stop     stop.Config
	traffic  traffic.Config
	ports    []uint16 // of --count-port
	paths    []string // of --wait-gone
	workDir  string   // where --on-stop runs; "": the current directory
	pid1     bool     // lameduck is PID 1, so all processes of the PID namespace are the command's
	hook     bool     // a preStop hook: lameduck holds beside a command that others stop
	grace    graceTerms
	server   server
	exits    []ExitCode // that were given
	warnings []string
}

// graceTerms describe the grace period of a plan.
type graceTerms struct {
	assumed bool
	from    string // the orchestrator whose default is assumed
	caveat  string // why the grace period may be too short; "": long enough
}

// server is the known server that the command is, or may turn out to be.
type server struct {
	preset *preset.Preset // nil: unknown as yet
	auto   bool           // preset is to be found when a signal arrives
}

// planner makes a plan, in the order of the stop sequence.
type planner struct {
	*Config
	plan plan
}

// newPlan makes the plan of c. With a terminal, resizing sends WINCH, which therefore
// stops nothing. PID 1 does no job control: PID 1 belongs to no shell's job, and no
// signal of its own PID namespace can stop PID 1. A STOP to itself would only discard a
// pending CONT.
func newPlan(c *Config, terminal, pid1 bool) (plan, error) {
	p := planner{Config: c, plan: plan{
		stop: stop.Config{
			Schedule:            c.Schedule,
			KillAfter:           c.KillAfter,
			SequenceWithoutHold: c.Schedule != nil || c.KillAfter > 0,
			HealthListener:      c.Health != nil,
			Linger:              c.Linger,
			StdinIsTerminal:     terminal,
			JobControl:          !pid1 && !c.SameGroup,
			StopSelfOnTSTP:      c.StopSelfOnTSTP && !pid1,
			TermGroup:           c.TermGroup,
		},
		traffic:  traffic.Config{Until: trafficCondition(c.Until), IgnorePorts: c.IgnorePorts, IgnorePeers: c.IgnorePeers, Probes: c.Probes},
		paths:    c.WaitGone,
		pid1:     pid1,
		warnings: slices.Clone(c.Warnings),
	}}
	for _, step := range []func() error{p.setRewrites, p.setStopSignals, p.setPorts, p.setPreset, p.setSchedule, p.setGrace, p.setExitCodes} {
		if err := step(); err != nil {
			return p.plan, err
		}
	}
	return p.plan, nil
}

// warn adds a warning.
func (p *planner) warn(format string, args ...any) {
	p.plan.warnings = append(p.plan.warnings, fmt.Sprintf(format, args...))
}

// Signals.

func (p *planner) setRewrites() error {
	for _, r := range p.Rewrites {
		if err := p.plan.stop.Rewrites.Add(r); err != nil {
			return fmt.Errorf("--rewrite=%v: %w", r, err)
		}
	}
	return nil
}

// setStopSignals collects the signals that start the sequence: TERM, the signal that TERM
// is rewritten to, which is often the image's STOPSIGNAL and then arrives in TERM's place,
// and the signals that were given.
func (p *planner) setStopSignals() error {
	set := sig.SetOf(sig.TERM)
	to, passes := p.plan.stop.Rewrites.Of(sig.TERM)
	switch {
	case !passes && p.TERMDropped && !p.Holds():
	case !passes:
		p.warn("--rewrite=TERM:0 drops TERM before it can start a stop: the command runs until it is killed")
	case to != sig.INT && sigcatch.Uncatchable(to) == "":
		set = set.With(to)
	}
	for _, s := range p.StopSignals {
		if why := sigcatch.Uncatchable(s); why != "" {
			return fmt.Errorf("--stop-signal=%v never reaches lameduck: %s", s, why)
		}
		set = set.With(s)
	}
	p.plan.stop.StopSignals = p.plan.withoutResize(set)
	return nil
}

// withoutResize returns set without the signal by which a terminal reports a new size.
func (p *plan) withoutResize(set sig.Set) sig.Set {
	if p.stop.StdinIsTerminal {
		return set.Without(sig.SetOf(sig.WINCH))
	}
	return set
}

// The ports.

// setPorts sets the ports that count. A port that is to count and not to count is refused.
func (p *planner) setPorts() error {
	for _, port := range p.CountPorts {
		if slices.Contains(p.IgnorePorts, port) {
			return fmt.Errorf("--count-port=%d and --ignore-port=%[1]d contradict each other: leave port %[1]d out of "+
				"one of them", port)
		}
	}
	p.plan.ports = p.CountPorts
	return nil
}

// The preset.

// setPreset resolves the preset as far as possible before the start.
func (p *planner) setPreset() error {
	if p.Preset == "" {
		return nil
	}
	p.plan.stop.SequenceWithoutHold = true
	p.plan.server.auto = p.Preset == AutoPreset
	if p.plan.server.auto {
		return nil
	}
	named, ok := preset.Named(p.Preset)
	if !ok {
		return fmt.Errorf("--preset=%s: unknown preset", Quote(p.Preset))
	}
	p.plan.usePreset(named)
	return nil
}

// usePreset makes found the preset of the plan.
func (p *plan) usePreset(found *preset.Preset) {
	p.stop.Preset = p.identified(found)
	p.stop.StopSignals |= p.stop.Preset.StopSignals
}

// identified records the preset of the command, and returns what the stop machine has to
// know about the preset.
func (p *plan) identified(found *preset.Preset) stop.Preset {
	p.server = server{preset: found}
	return stop.Preset{StopSignals: p.withoutResize(sig.SetOf(found.StopSignals...)), Steps: found.Steps()}
}

// The schedule.

// setSchedule checks the times of KILL, and drops the signals of the C library's threads
// unless the configuration names them: no init passes them on, and they end a C program.
// A --kill-after that comes before the given schedule's last signal is refused. A preset's
// later steps may be cut short, since the user did not ask for each of them.
func (p *planner) setSchedule() error {
	rewrites := &p.plan.stop.Rewrites
	for s := range sig.Internal.Without(rewrites.Given() | p.plan.stop.StopSignals).All {
		rewrites.Add(Rewrite{From: s}) // cannot fail: s has no rewrite yet
	}
	if p.KillAfter == 0 {
		return nil
	}
	if p.Schedule.Kills() {
		return fmt.Errorf("--kill-after=%v with --stop-schedule=%v: KILL is given twice: keep one", p.KillAfter, p.Schedule)
	}
	step, at, found := p.Schedule.CutOffBy(p.KillAfter)
	if !found {
		return nil
	}
	enough := at.Truncate(time.Second) + time.Second
	return fmt.Errorf("--kill-after=%v with --stop-schedule=%v: KILL comes at %v and %v only at %v: give --kill-after=%v or more, or put KILL into the schedule",
		p.KillAfter, p.Schedule, p.KillAfter, step, at, enough.Seconds())
}

// The grace period and the gate.

// setGrace fits the hold, the schedule and the linger into the grace period. Times that do
// not fit are an error if the grace period was given. An assumed grace period yields to
// given times, with a warning.
func (p *planner) setGrace() error {
	grace := p.GracePeriod
	if grace == 0 {
		p.plan.grace.assumed = true
		grace, p.plan.grace.from = assumedGrace(p.Env)
	}
	p.plan.stop.Grace = grace
	ceiling := p.ceiling(grace)
	fits := p.fitsInto(ceiling)
	p.setGate(max(ceiling, 0), fits)
	if err := p.checkGate(); err != nil || fits {
		return err
	}
	if p.plan.grace.assumed {
		p.warnAssumed()
		return nil
	}
	needed := p.longestGiven()
	if needed == 0 && p.Until != Elapsed {
		needed = time.Second
	}
	return fmt.Errorf("%s does not fit into --grace-period=%s, which leaves %v for the hold: give less, or a grace period of %s s",
		cmp.Or(p.givenTimes(), "--until="+string(p.Until)), inSeconds(grace), max(ceiling, 0).Truncate(100*time.Millisecond), inSeconds(p.graceFor(needed)))
}

// setGate sets the gate and the times of the traffic's judgement. The grace period leaves
// ceiling for the hold, and fits says whether the given times fit below that.
func (p *planner) setGate(ceiling time.Duration, fits bool) {
	gate := stop.Gate{
		Floor: p.Delay, Ceiling: ceiling,
		Until: p.Until, WaitGone: len(p.WaitGone) > 0, OnStop: len(p.OnStop) > 0,
	}
	switch {
	case p.MaxDelay > 0:
		gate.Ceiling = p.MaxDelay
	case fits, p.GracePeriod > 0: // the grace period decides
	case gate.Until == Elapsed:
		gate.Ceiling = p.Delay
	default:
		gate.Ceiling = p.Delay + 2*cmp.Or(p.QuietFor, defaultQuiet)
	}
	gate.UnseenFloor = min(p.unseenFloor(), gate.Ceiling)
	p.plan.stop.Gate = gate
	t := &p.plan.traffic
	t.QuietFor = cmp.Or(p.QuietFor, min(defaultQuiet, gate.Ceiling/2))
	t.Poll = min(max(t.QuietFor/12, 10*time.Millisecond), time.Second)
	t.MaxSilence = cmp.Or(p.MaxSilence, defaultMaxSilence)
}

// trafficCondition returns the condition that the traffic's summary explains: for a hold
// that is not adaptive, quiet.
func trafficCondition(until Condition) traffic.Condition {
	switch until {
	case Settled:
		return traffic.UntilSettled
	case Drained:
		return traffic.UntilDrained
	}
	return traffic.UntilQuiet
}

// unseenFloor returns the floor of an adaptive hold whose traffic cannot be observed: a
// floor or a ceiling that was given, else the default.
func (p *planner) unseenFloor() time.Duration {
	switch {
	case p.MaxDelay > 0:
		return p.MaxDelay
	case p.DelayGiven || p.Delay > 0:
		return p.Delay
	}
	return defaultUnseenFloor
}

// checkGate reports times that contradict each other.
func (p *planner) checkGate() error {
	gate := &p.plan.stop.Gate
	switch {
	case p.MaxDelay > 0 && p.Delay > p.MaxDelay:
		return fmt.Errorf("--delay=%v is longer than --max-delay=%v: give a shorter --delay or a longer --max-delay",
			p.Delay, p.MaxDelay)
	case p.MaxDelay > 0 && p.QuietFor > p.MaxDelay:
		return fmt.Errorf("--quiet-for=%v is longer than --max-delay=%v: give a shorter --quiet-for or a longer "+
			"--max-delay", p.QuietFor, p.MaxDelay)
	case p.Schedule.LoopsWithoutWait():
		return fmt.Errorf("--stop-schedule=%v repeats without a wait: add a wait after forever, as in forever/TERM/5s",
			p.Schedule)
	case gate.Ceiling <= 0 && (gate.WaitGone || gate.OnStop):
		return fmt.Errorf("%s leaves no time for the hold that --wait-gone and --on-stop need: give a grace period of "+
			"%s s or more, or --max-delay", cmp.Or(p.givenTimes(), "the grace period"), inSeconds(p.graceFor(time.Second)))
	}
	return nil
}

// warnAssumed warns that the assumed grace period is too short for the given times.
func (p *planner) warnAssumed() {
	grace := p.plan.stop.Grace
	left := grace - p.plan.stop.Gate.MaxHold() - p.Schedule.InitialWait() - p.Linger
	caveat := fmt.Sprintf("assumed grace period %v ends first: give --grace-period and docker stop -t", grace)
	if left > p.timeToLast() {
		caveat = fmt.Sprintf("assumed grace period %v leaves the command %v to stop: give --grace-period and docker "+
			"stop -t", grace, left)
	}
	p.plan.grace.caveat = caveat
	p.warn("%s: %s", p.givenTimes(), caveat)
}

// Exit codes.

func (p *planner) setExitCodes() error {
	for i, m := range p.ExitCodes {
		if slices.ContainsFunc(p.ExitCodes[:i], func(before ExitMap) bool { return before.From == m.From }) {
			return fmt.Errorf("--exit-code=%d:%d: exit code %d is mapped twice: keep one", m.From, m.To, m.From)
		}
		p.plan.exits = append(p.plan.exits, ExitCode{ExitMap: m})
	}
	return nil
}

// exitCodes returns the exit codes to report instead of others, those that were given before
// those of the preset.
func (p *plan) exitCodes() []ExitCode {
	exits := slices.Clone(p.exits)
	if p.server.preset == nil {
		return exits
	}
	for _, m := range p.server.preset.Exit {
		if !slices.ContainsFunc(p.exits, func(given ExitCode) bool { return given.From == m.From }) {
			exits = append(exits, ExitCode{m, true})
		}
	}
	return exits
}

// exitCode returns the exit code to report for the command's own.
func (p *plan) exitCode(code int, stopped bool) int {
	for _, exit := range p.exitCodes() {
		if exit.From == code && (stopped || !exit.AfterStop) {
			return exit.To
		}
	}
	return code
}
