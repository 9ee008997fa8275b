package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// Given is a value of a flag.
type Given struct {
	*kong.Flag
	Source string // the origin: "--delay", "LAMEDUCK_DELAY"
	Text   string
	Err    error // what is wrong with the value, or nil
}

// Given returns the values of flags: those on the command line, and then the variables.
func (l *Line) Given() []Given { return l.given }

func (g Given) String() string { return shim.Flag(g.Name, shim.Quote(g.Text)) }

func (g Given) fromEnv() bool { return g.Source == Variable(g.Flag) }

// gave reports whether a flag or its variable was given.
func (l *Line) gave(flag string) bool {
	return slices.ContainsFunc(l.given, func(g Given) bool { return g.Name == flag })
}

// OnlyHolds reports whether flags were given on the command line, all of them flags of lameduck hold.
func (l *Line) OnlyHolds() bool {
	ofHold := flagsOf("hold", l.flags)
	given := false
	for _, g := range l.given {
		if g.fromEnv() {
			continue
		}
		if !slices.Contains(ofHold, g.Flag) {
			return false
		}
		given = true
	}
	return given
}

// Values returns the configuration without checks. Invalid values are zero.
func (l *Line) Values() shim.Config {
	cfg := shim.Config(l.Settings)
	cfg.JSON = l.LogFormat == "json"
	for _, u := range l.Unknown {
		cfg.Warnings = append(cfg.Warnings, u.String())
	}
	cfg.Texts = map[string]string{}
	for _, g := range l.given {
		cfg.Texts[g.Name] = g.Text
	}
	if !l.gave("log-level") {
		cfg.Level = shim.Warn
	}
	if l.name != "run" && !l.gave("until") {
		cfg.Until = shim.Quiet
	}
	cfg.DelayGiven = l.gave("delay") && cfg.Until != shim.Elapsed
	if l.Health != nil && !l.gave("health-during") {
		cfg.HealthDuring = shim.HealthFail
		// A pod that is deleted should stay ready for as long as it serves.
		if inPod, _ := Lookup(l.Env, "KUBERNETES_SERVICE_HOST"); inPod != "" {
			cfg.HealthDuring = shim.HealthPass
		}
	}
	return cfg
}

// Config returns the configuration, or the first value that is invalid or a flag without
// effect as an error. The error's form, text or JSON, is in the configuration too. A
// variable without effect is a warning, and left out; so is a flag about a hold that a
// variable turns off: operators turn a hold off without a change of the arguments.
func (l *Line) Config() (shim.Config, error) {
	cfg := l.Values()
	holdIsOff := false
	for _, g := range l.given {
		if g.Err != nil {
			return cfg, fmt.Errorf("%v: %w", g, g.Err)
		}
		turnsOff := g.Target.IsZero() && (g.Name == "until" || g.Name == "delay")
		holdIsOff = holdIsOff || turnsOff && g.fromEnv()
	}
	var warnings []string
	for _, g := range l.given {
		_, err := time.ParseDuration(g.Text)
		if g.Name == "grace-period" && cfg.GracePeriod > time.Hour && err != nil {
			warnings = append(warnings, fmt.Sprintf("%v is more than an hour: a number without a unit is in seconds", g))
		}
		need := g.Tag.Get("needs")
		met, remedy := isMet(need, &cfg)
		switch {
		case met:
			continue
		case !g.fromEnv() && !(holdIsOff && need != "health"):
			return cfg, fmt.Errorf("%v has no effect %s, or leave it out", g, remedy)
		case need == "sequence": // a grace period for a whole fleet, of use for the report
			continue
		}
		g.Target.SetZero()
		warnings = append(warnings, fmt.Sprintf("%v has no effect %s", g, remedy))
	}
	cfg = l.Values()
	cfg.Warnings = append(cfg.Warnings, warnings...)
	return cfg, nil
}

// isMet reports whether cfg has what a flag needs to have an effect, and if not, what to do
// about it.
func isMet(need string, cfg *shim.Config) (met bool, remedy string) {
	const needsHold = "without a hold: give --delay (LAMEDUCK_DELAY) or --until (LAMEDUCK_UNTIL) too"
	switch need {
	case "until":
		return cfg.Until != shim.Elapsed, "unless the hold waits for traffic: give --until (LAMEDUCK_UNTIL) too"
	case "quiet":
		return cfg.Until == shim.Quiet || cfg.Until == shim.Drained,
			"unless the hold waits for clients that stay: give --until=quiet (LAMEDUCK_UNTIL) too"
	case "hold":
		return cfg.Holds(), needsHold
	case "sequence": // a stop signal does more than pass
		other := cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset != "" || cfg.Linger > 0
		return cfg.Holds() || other, needsHold
	case "health":
		return cfg.Health != nil, "alone: give --health (LAMEDUCK_HEALTH) too"
	}
	return true, ""
}
