package cli

import (
	"fmt"
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// Config returns the configuration, or the first value that is invalid or a flag without
// effect as an error. The error's form, text or JSON, is in the configuration too.
func (r *Run) Config() (shim.Config, error) { return r.check(r) }

// Config is Run.Config for lameduck hold.
func (h *HoldOnly) Config() (shim.Config, error) { return h.check(h) }

// Config is Run.Config for lameduck watch.
func (w *Watch) Config() (shim.Config, error) { return w.check(w) }

// Values returns the configuration without checks. Invalid values are zero.
func (r *Run) Values() shim.Config {
	cfg := r.base()
	cfg.Command = r.Command
	r.Hold.fill(&cfg)
	r.Traffic.fill(&cfg)
	r.Signals.fill(&cfg)
	r.Stop.fill(&cfg)
	r.Report.fill(&cfg)
	r.Neighbors.fill(&cfg)
	r.Process.fill(&cfg)
	cfg.ExitCodes = r.ExitCode.Values
	return cfg
}

// Values is Run.Values for lameduck hold, which holds for traffic by default.
func (h *HoldOnly) Values() shim.Config {
	cfg := h.base()
	h.Hold.fill(&cfg)
	h.Traffic.fill(&cfg)
	h.Report.fill(&cfg)
	if !h.Until.Given() {
		cfg.Until, cfg.DelayGiven = shim.Quiet, h.Delay.Given()
	}
	return cfg
}

// Values is Run.Values for lameduck watch, which looks at traffic as a hold would.
func (w *Watch) Values() shim.Config {
	cfg := shim.Config{Env: w.Env}
	w.Traffic.fill(&cfg)
	cfg.Until = shim.Quiet
	return cfg
}

// base returns the defaults that are not zero values, and what is in no section.
func (l *Line) base() shim.Config {
	cfg := shim.Config{Env: l.Env, Level: shim.Warn}
	for _, u := range l.Unknown {
		cfg.Warnings = append(cfg.Warnings, u.String())
	}
	return cfg
}

func (h *Hold) fill(cfg *shim.Config) {
	cfg.Delay = h.Delay.Value
	cfg.Until = h.Until.Value
	cfg.DelayGiven = h.Delay.Given() && cfg.Until != shim.Elapsed
	cfg.MaxDelay = h.MaxDelay.Value
	cfg.GracePeriod = h.GracePeriod.Value
	cfg.WaitGone = h.WaitGone.Values
	cfg.OnStop = h.OnStop.Value
}

func (t *Traffic) fill(cfg *shim.Config) {
	cfg.QuietFor = t.QuietFor.Value
	cfg.MaxSilence = t.MaxSilence.Value
	cfg.CountPorts = t.CountPort.Values
	cfg.IgnorePorts = t.IgnorePort.Values
	cfg.IgnorePeers = t.IgnorePeer.Values
	cfg.Probes = t.probes()
}

// probes returns the rule for what looks like health probes, patient unless given.
func (t *Traffic) probes() shim.ProbeRule {
	switch {
	case t.IgnoreProbes.Value:
		return shim.IgnoreProbes
	case t.IgnoreProbes.Given():
		return shim.CountProbes
	}
	return shim.IgnoreProbesPatiently
}

func (s *Signals) fill(cfg *shim.Config) {
	cfg.Rewrites = s.Rewrite.Values
	cfg.StopSignals = s.StopSignal.Values
	cfg.Preset = s.Preset.Value
	cfg.Group = s.Group.Value
}

func (s *Stop) fill(cfg *shim.Config) {
	cfg.Schedule = s.StopSchedule.Value
	cfg.KillAfter = s.KillAfter.Value
	cfg.Linger = s.Linger.Value
}

func (r *Report) fill(cfg *shim.Config) {
	cfg.JSON = r.LogFormat.Value
	cfg.TerminationLog = r.TerminationLog.Value
	if r.LogLevel.Given() {
		cfg.Level = r.LogLevel.Value
	}
}

// fill sets pass as the default in Kubernetes: a pod that is deleted should stay ready
// for as long as it serves.
func (n *Neighbors) fill(cfg *shim.Config) {
	cfg.AliveFile = n.AliveFile.Value
	if !n.Health.Given() {
		return
	}
	cfg.Health = &n.Health.Value
	cfg.HealthDuring = shim.HealthFail
	if set, _ := Lookup(cfg.Env, "KUBERNETES_SERVICE_HOST"); set != "" {
		cfg.HealthDuring = shim.HealthPass
	}
	if n.HealthDuring.Given() {
		cfg.HealthDuring = n.HealthDuring.Value
	}
}

func (p *Process) fill(cfg *shim.Config) {
	cfg.Subreaper = p.Subreaper.Value
	cfg.ParentDeathSignal = p.ParentDeathSignal.Value
}

// check returns the configuration of grammar, of which l is a part, if the values are
// valid and have an effect. A variable without effect is a warning, and left out.
func (l *Line) check(grammar interface{ Values() shim.Config }) (shim.Config, error) {
	cfg := grammar.Values()
	for _, given := range l.Given() {
		if given.Err != nil {
			return cfg, fmt.Errorf("%s=%s: %w", given.Source, shim.Quote(given.Text), given.Err)
		}
	}
	unused := l.CheckUnused(&cfg)
	for _, u := range unused {
		if u.Refused() {
			return cfg, fmt.Errorf("%v, or leave it out", u)
		}
		if u.flag.needs() != needsSequence { // a grace period is of use for the report
			u.flag.value.SetZero()
		}
	}
	if len(unused) > 0 {
		cfg = grammar.Values()
	}
	for _, u := range unused {
		cfg.Warnings = append(cfg.Warnings, u.String())
	}
	return cfg, nil
}

// Given is a value of a flag.
type Given struct {
	Flag   string // the flag's name: "delay"
	Short  string // the short form: "-d", or ""
	Source string // the origin: "--delay", "LAMEDUCK_DELAY"
	Text   string
	Err    error // what is wrong with the value, or nil

	fromEnv bool
	flag    *flag
}

// Given returns the values of all flags that were given, in the grammar's order.
func (l *Line) Given() (given []Given) {
	for i := range l.flags {
		f := &l.flags[i]
		if !f.given {
			continue
		}
		for _, t := range f.texts() {
			given = append(given, Given{f.name(), f.dashed(), l.source(f), t.text, t.err, l.vars.used[f.name()], f})
		}
	}
	return given
}

// source returns where a flag's value comes from.
func (l *Line) source(f *flag) string {
	if l.vars.used[f.name()] {
		return f.env
	}
	return "--" + f.name()
}

// Unused is a flag that has no effect beside the others given.
type Unused struct {
	Given
	remedy    string
	holdIsOff bool // by a variable
}

// Refused reports whether the flag is an error. A variable without effect is a warning, and
// so is a flag about a hold that a variable turns off: operators turn a hold off without a
// change of the arguments.
func (u Unused) Refused() bool {
	return !u.fromEnv && !(u.holdIsOff && u.flag.needs() != needsHealth)
}

func (u Unused) String() string {
	return fmt.Sprintf("%s=%s has no effect %s", u.Source, shim.Quote(u.Text), u.remedy)
}

// What a flag needs to have an effect: the values of the tag needs.
const (
	needsUntil    = "until"
	needsHold     = "hold"
	needsSequence = "sequence" // a stop signal does more than pass
	needsHealth   = "health"
)

// met reports whether cfg has what a flag needs, and if not, what to do about it.
func met(need string, cfg *shim.Config) (ok bool, remedy string) {
	switch need {
	case needsUntil:
		return cfg.Until != shim.Elapsed, "unless the hold waits for traffic: give --until too"
	case needsHold:
		return cfg.Holds(), "without a hold: give --delay or --until too"
	case needsSequence:
		other := cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset != "" || cfg.Linger > 0
		return cfg.Holds() || other, "without a hold: give --delay or --until too"
	case needsHealth:
		return cfg.Health != nil, "without --health: give --health too"
	}
	return true, ""
}

// CheckUnused returns the flags that have no effect in cfg, the configuration of l.
func (l *Line) CheckUnused(cfg *shim.Config) (unused []Unused) {
	given := l.Given()
	off := slices.ContainsFunc(given, Given.turnsOff)
	for i, g := range given {
		last := i == len(given)-1 || given[i+1].flag != g.flag
		ok, remedy := met(g.flag.needs(), cfg)
		if last && !ok {
			unused = append(unused, Unused{g, remedy, off})
		}
	}
	return unused
}

// turnsOff reports whether g is a variable that turns the hold off: LAMEDUCK_UNTIL=elapsed or
// LAMEDUCK_DELAY=0.
func (g Given) turnsOff() bool {
	if !g.fromEnv || g.Err != nil {
		return false
	}
	switch v := g.flag.value.Addr().Interface().(type) {
	case *Condition:
		return v.Value == shim.Elapsed
	case *Duration:
		return g.Flag == "delay" && v.Value == 0
	}
	return false
}
