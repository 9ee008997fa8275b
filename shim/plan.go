package shim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/report"
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

// plan is a configuration with defaults filled in and contradictions refused.
type plan struct {
	Config  // as given, with the warnings of the plan
	stop    stop.Config
	traffic traffic.Config
	terms   report.Terms
	server  *preset.Preset // the known server that the command is; nil: none, or unknown as yet
	pid1    bool           // lameduck is PID 1, so all processes of the PID namespace are the command's
}

// newPlan makes the plan of c. With a terminal, resizing sends WINCH, which therefore
// stops nothing. PID 1 does no job control: PID 1 belongs to no shell's job, and no
// signal of its own PID namespace can stop PID 1. A STOP to itself would only discard a
// pending CONT.
func newPlan(c *Config, terminal, pid1 bool) (*plan, error) {
	p := &plan{
		Config: *c,
		stop: stop.Config{
			Schedule:            c.Schedule,
			KillAfter:           c.KillAfter,
			SequenceWithoutHold: c.Schedule != nil || c.KillAfter > 0 || c.Preset != "",
			HealthListener:      c.Health != nil,
			Linger:              c.Linger,
			StdinIsTerminal:     terminal,
			JobControl:          !pid1 && !c.SameGroup,
			StopSelfOnTSTP:      c.StopSelfOnTSTP && !pid1,
			TermGroup:           c.TermGroup,
		},
		traffic: traffic.Config{
			IgnorePorts: c.IgnorePorts, IgnorePeers: c.IgnorePeers, Probes: c.Probes, CloseIdle: c.CloseIdle,
		},
		pid1: pid1,
	}
	p.Warnings = slices.Clone(c.Warnings)
	p.terms = report.Terms{Config: &p.stop, TrafficConfig: &p.traffic, WaitGone: c.WaitGone}
	err := p.setSignals()
	if named, ok := preset.Named(p.Preset); ok { // that of AutoPreset is found when a signal arrives
		p.usePreset(named)
	}
	return p, cmp.Or(err, p.contradiction(), p.setGrace())
}

// setSignals sets the rewrites, and the signals that start the sequence: TERM, the signal
// that TERM is rewritten to, which is often the image's STOPSIGNAL and then arrives in TERM's
// place, and the signals that were given. Signals of the C library's threads are dropped
// unless the configuration names them: no init passes them on, and they end a C program.
func (p *plan) setSignals() error {
	rewrites := &p.stop.Rewrites
	for _, r := range p.Rewrites {
		if err := rewrites.Add(r); err != nil {
			return fmt.Errorf("--rewrite=%v (LAMEDUCK_REWRITE): %w", r, err)
		}
	}
	set := sig.SetOf(p.StopSignals...).With(sig.TERM)
	to, passes := rewrites.Of(sig.TERM)
	switch {
	case !passes && (p.Holds() || !p.TERMDropped):
		p.Warnings = append(p.Warnings, "--rewrite=TERM:0 (LAMEDUCK_REWRITE) drops TERM "+
			"before it can start a stop: the command runs until it is killed")
	case passes && to != sig.INT && sigcatch.Uncatchable(to) == "":
		set = set.With(to)
	}
	for _, s := range p.StopSignals {
		if why := sigcatch.Uncatchable(s); why != "" {
			return fmt.Errorf("--stop-signal=%v (LAMEDUCK_STOP_SIGNAL) never reaches lameduck: %s", s, why)
		}
	}
	p.stop.StopSignals = p.withoutResize(set)
	for s := range sig.Internal.Without(rewrites.Given() | set).All {
		rewrites.Add(Rewrite{From: s}) // cannot fail: s has no rewrite yet
	}
	return nil
}

// withoutResize returns set without the signal by which a terminal reports a new size.
func (p *plan) withoutResize(set sig.Set) sig.Set {
	if p.stop.StdinIsTerminal {
		return set.Without(sig.SetOf(sig.WINCH))
	}
	return set
}

// usePreset makes found the preset of the plan.
func (p *plan) usePreset(found *preset.Preset) {
	p.server = found
	p.terms.Server = found.Name
	p.terms.ClosesKept = found.ClosesKept
	p.terms.Caveat = found.Caveat
	p.stop.Preset = stop.Preset{
		StopSignals: p.withoutResize(sig.SetOf(found.StopSignals...)),
		Steps:       found.Steps(),
	}
	p.stop.StopSignals |= p.stop.Preset.StopSignals
}

// contradiction reports flags that contradict each other, whatever the grace period. A
// --kill-after that comes before the given schedule's last signal is refused. A preset's
// later steps may be cut short, since the user did not ask for each of them.
func (p *plan) contradiction() error {
	for _, port := range p.CountPorts {
		if slices.Contains(p.IgnorePorts, port) {
			return fmt.Errorf("--count-port=%d (LAMEDUCK_COUNT_PORT) and --ignore-port=%[1]d (LAMEDUCK_IGNORE_PORT) "+
				"contradict each other: leave port %[1]d out of one of them", port)
		}
	}
	mapped := map[int]bool{}
	for _, m := range p.ExitCodes {
		if mapped[m.From] {
			return fmt.Errorf("--exit-code=%d:%d (LAMEDUCK_EXIT_CODE): exit code %[1]d is mapped twice: keep one",
				m.From, m.To)
		}
		mapped[m.From] = true
	}
	schedule := p.flag("stop-schedule", p.Schedule)
	killAfter := p.flag("kill-after", p.KillAfter)
	step, at, cutOff := p.Schedule.CutOffBy(p.KillAfter)
	switch {
	case p.KillAfter > 0 && p.Schedule.Kills():
		return fmt.Errorf("%s with %s: KILL is given twice: keep one", killAfter, schedule)
	case p.KillAfter > 0 && cutOff:
		return errors.New(stop.InWords("%s with %s: KILL comes at %s and %v only at %s: "+
			"raise --kill-after, or put KILL into the schedule", killAfter, schedule, p.KillAfter, step, at))
	case p.Schedule.LoopsWithoutWait():
		return fmt.Errorf("%s repeats without a wait: add a wait after forever, as in forever/TERM/5s", schedule)
	case p.MaxDelay > 0 && p.longestGiven() > p.MaxDelay:
		return fmt.Errorf("%s: --max-delay is the longest hold: raise it, or shorten the other", p.givenTimes())
	}
	return nil
}

// setGrace fits the hold, the schedule and the linger into the grace period. Times that do
// not fit are an error if the grace period was given. An assumed grace period yields to
// given times, with a warning.
func (p *plan) setGrace() error {
	p.stop.Grace = p.GracePeriod
	if p.GracePeriod == 0 {
		p.terms.GraceAssumed = true
		p.stop.Grace, p.terms.AssumedFrom = assumedGrace(p.Env)
	}
	left := p.ceiling(p.stop.Grace)
	adaptive := p.Until != Elapsed
	fits := p.givenTimes() == "" && !adaptive || p.longestGiven() <= left && (left > 0 || !adaptive)
	left = max(left, 0)
	ceiling := left
	if !fits && p.terms.GraceAssumed {
		ceiling = p.Delay
		if adaptive {
			ceiling += 2 * cmp.Or(p.QuietFor, defaultQuiet)
		}
	}
	p.setGate(cmp.Or(p.MaxDelay, ceiling))
	silence := p.traffic.QuietFor
	if adaptive && max(p.QuietFor, p.MaxDelay) == 0 && silence < time.Second {
		p.Warnings = append(p.Warnings, stop.InWords("the grace period leaves %s for the hold, and %s of silence ends it: "+
			"give a longer one, or --quiet-for (LAMEDUCK_QUIET_FOR)", p.stop.Gate.Ceiling, silence))
	}
	switch {
	case p.stop.Gate.Ceiling <= 0 && len(p.WaitGone)+len(p.OnStop) > 0:
		return errors.New(stop.InWords("%s leaves no time for the hold that --wait-gone (LAMEDUCK_WAIT_GONE) and "+
			"--on-stop (LAMEDUCK_ON_STOP) need: give a grace period of %s or more, or --max-delay (LAMEDUCK_MAX_DELAY)",
			cmp.Or(p.givenTimes(), "the grace period"), p.graceFor(time.Second)))
	case fits:
	case p.terms.GraceAssumed:
		p.warnAssumed()
	default:
		needed := p.longestGiven()
		if adaptive {
			needed = cmp.Or(needed, time.Second)
		}
		return errors.New(stop.InWords("%s does not fit into %s, which leaves %s for the hold: "+
			"give less, or a grace period of %s", cmp.Or(p.givenTimes(), p.flag("until", p.Until)),
			p.flag("grace-period", p.GracePeriod), left.Truncate(100*time.Millisecond), p.graceFor(needed)))
	}
	return nil
}

// setGate sets the gate and the times of the traffic's judgement, with the longest hold that
// the given times and the grace period allow. For a hold that is not adaptive the traffic's
// summary explains whether it is quiet.
func (p *plan) setGate(ceiling time.Duration) {
	unseenFloor := cmp.Or(p.MaxDelay, p.Delay)
	if unseenFloor == 0 && !p.DelayGiven {
		unseenFloor = defaultUnseenFloor
	}
	p.stop.Gate = stop.Gate{
		Floor: p.Delay, Ceiling: ceiling, UnseenFloor: min(unseenFloor, ceiling),
		Until: p.Until, WaitGone: len(p.WaitGone) > 0, OnStop: len(p.OnStop) > 0,
	}
	t := &p.traffic
	t.Until = p.Until
	t.QuietFor = cmp.Or(p.QuietFor, min(defaultQuiet, ceiling/2))
	t.Poll = min(max(t.QuietFor/12, 10*time.Millisecond), time.Second)
	t.MaxSilence = cmp.Or(p.MaxSilence, defaultMaxSilence)
}

// warnAssumed warns that the assumed grace period is too short for the given times.
func (p *plan) warnAssumed() {
	outcome := "is too short"
	left := p.stop.Grace - p.stop.Gate.MaxHold() - p.Schedule.InitialWait() - p.Linger
	if last, _ := p.lastSignal(); left > last {
		outcome = stop.InWords("leaves the command %s to stop", left)
	}
	p.terms.GraceCaveat = stop.InWords("the grace period is assumed to be %s, as in %s, which %s: give the real one "+
		"with --grace-period (LAMEDUCK_GRACE_PERIOD)", p.stop.Grace, p.terms.AssumedFrom, outcome)
	p.Warnings = append(p.Warnings, p.givenTimes()+": "+p.terms.GraceCaveat)
}

// exitCode returns the exit code to report for the command's own. A preset's exit codes count
// after a stop, and those that were given before them.
func (p *plan) exitCode(code int, stopped bool) int {
	maps := p.ExitCodes
	if stopped && p.server != nil {
		maps = slices.Concat(maps, p.server.Exit)
	}
	for _, m := range maps {
		if m.From == code {
			return m.To
		}
	}
	return code
}
