package cli

import (
	"fmt"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Given is a value of a flag.
type Given struct {
	Flag   string // the flag's name: "delay"
	Short  string // the short form: "-d", or ""
	Source string // the origin: "--delay", "LAMEDUCK_DELAY"
	Text   string
	Err    error // what is wrong with the value, or nil

	flag *kong.Flag
}

// Given returns the values of flags: those on the command line, and then the variables.
func (l *Line) Given() []Given { return l.given }

func (g Given) String() string { return g.Source + "=" + shim.Quote(g.Text) }

func (g Given) fromEnv() bool { return g.Source == Variable(g.flag) }

// gave reports whether a flag or its variable was given.
func (l *Line) gave(flag string) bool {
	return slices.ContainsFunc(l.given, func(g Given) bool { return g.Flag == flag })
}

// OnlyHolds reports whether flags were given on the command line, all of them flags of lameduck hold.
func (l *Line) OnlyHolds() bool {
	given := slices.DeleteFunc(slices.Clone(l.given), Given.fromEnv)
	foreign := func(g Given) bool { return len(flagsOf("hold", []*kong.Flag{g.flag})) == 0 }
	return len(given) > 0 && !slices.ContainsFunc(given, foreign)
}

// Values returns the configuration without checks. Invalid values are zero.
func (l *Line) Values() shim.Config {
	cfg := shim.Config{
		Command: l.Command, Env: l.Env, Level: shim.Warn,
		Delay: l.Delay, Until: l.Until, GracePeriod: l.GracePeriod, MaxDelay: l.MaxDelay,
		WaitGone: l.WaitGone, OnStop: l.OnStop,
		QuietFor: l.QuietFor, MaxSilence: l.MaxSilence,
		CountPorts: l.CountPort, IgnorePorts: l.IgnorePort, IgnorePeers: l.IgnorePeer, Probes: l.IgnoreProbes,
		Rewrites: l.Rewrite, StopSignals: l.StopSignal, Preset: l.Preset, Group: l.Group,
		Schedule: l.StopSchedule, KillAfter: l.KillAfter, Linger: l.Linger, ExitCodes: l.ExitCode,
		JSON: l.LogFormat == "json", TerminationLog: l.TerminationLog,
		Health: l.Health, AliveFile: l.AliveFile, Subreaper: l.Subreaper, ParentDeathSignal: l.ParentDeathSignal,
	}
	for _, u := range l.Unknown {
		cfg.Warnings = append(cfg.Warnings, u.String())
	}
	if l.gave("log-level") {
		cfg.Level = l.LogLevel
	}
	if l.name != "run" && !l.gave("until") {
		cfg.Until = shim.Quiet
	}
	cfg.DelayGiven = l.gave("delay") && cfg.Until != shim.Elapsed
	if l.Health != nil {
		cfg.HealthDuring = shim.HealthFail
		// A pod that is deleted should stay ready for as long as it serves.
		if inPod, _ := Lookup(l.Env, "KUBERNETES_SERVICE_HOST"); inPod != "" {
			cfg.HealthDuring = shim.HealthPass
		}
		if l.gave("health-during") {
			cfg.HealthDuring = l.HealthDuring
		}
	}
	return cfg
}

// Config returns the configuration, or the first value that is invalid or a flag without
// effect as an error. The error's form, text or JSON, is in the configuration too. A
// variable without effect is a warning, and left out.
func (l *Line) Config() (shim.Config, error) {
	cfg := l.Values()
	for _, g := range l.given {
		if g.Err != nil {
			return cfg, fmt.Errorf("%v: %w", g, g.Err)
		}
	}
	unused := l.CheckUnused(&cfg)
	for _, u := range unused {
		if u.Refused() {
			return cfg, fmt.Errorf("%v, or leave it out", u)
		}
		if u.needs() != "sequence" { // a grace period is of use for the report
			u.flag.Target.SetZero()
		}
	}
	cfg = l.Values()
	for _, u := range unused {
		cfg.Warnings = append(cfg.Warnings, u.String())
	}
	return cfg, nil
}

// Unused is a flag that has no effect beside the others given.
type Unused struct {
	Given
	remedy    string
	holdIsOff bool // by a variable
}

func (u Unused) needs() string { return u.flag.Tag.Get("needs") }

// Refused reports whether the flag is an error. A variable without effect is a warning, and
// so is a flag about a hold that a variable turns off: operators turn a hold off without a
// change of the arguments.
func (u Unused) Refused() bool { return !u.fromEnv() && !(u.holdIsOff && u.needs() != "health") }

func (u Unused) String() string { return fmt.Sprintf("%v has no effect %s", u.Given, u.remedy) }

// met reports whether cfg has what a flag needs to have an effect, and if not, what to do
// about it.
func met(need string, cfg *shim.Config) (ok bool, remedy string) {
	switch need {
	case "until":
		return cfg.Until != shim.Elapsed, "unless the hold waits for traffic: give --until too"
	case "hold":
		return cfg.Holds(), "without a hold: give --delay or --until too"
	case "sequence": // a stop signal does more than pass
		other := cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset != "" || cfg.Linger > 0
		return cfg.Holds() || other, "without a hold: give --delay or --until too"
	case "health":
		return cfg.Health != nil, "without --health: give --health too"
	}
	return true, ""
}

// CheckUnused returns the flags that have no effect in cfg, the configuration of l.
func (l *Line) CheckUnused(cfg *shim.Config) (unused []Unused) {
	turnsOff := func(g Given) bool {
		is0 := g.Flag == "until" && l.Until == shim.Elapsed || g.Flag == "delay" && l.Delay == 0
		return is0 && g.fromEnv() && g.Err == nil
	}
	off := slices.ContainsFunc(l.given, turnsOff)
	for i, g := range l.given {
		again := slices.ContainsFunc(l.given[i+1:], func(later Given) bool { return later.flag == g.flag })
		ok, remedy := met(g.flag.Tag.Get("needs"), cfg)
		if !ok && !again {
			unused = append(unused, Unused{g, remedy, off})
		}
	}
	return unused
}
