package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lameduck-init/lameduck/shim"
)

// Values returns the configuration without checks. Invalid values are zero.
func (l *Line) Values() shim.Config {
	cfg := l.Flags.Config
	cfg.JSON = l.JSON || l.LogFormat == "json"
	for _, u := range l.Unknown {
		cfg.Warnings = append(cfg.Warnings, u.Error())
	}
	if !l.gave("log-level") {
		cfg.Level = shim.Warn
	}
	if l.name != "run" && !l.gave("until") {
		cfg.Until = shim.Quiet
	}
	cfg.DelayGiven = l.gave("delay") && cfg.Until != shim.Elapsed
	cfg.LingerGiven = l.gave("linger")
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
// variable without effect is a warning, and left out. What is about a hold that a variable
// turns off is left out in silence: operators roll back without a change of the arguments.
func (l *Line) Config() (shim.Config, error) {
	cfg := l.Values()
	holdIsOff := false
	for _, g := range l.Given {
		if g.Err != nil {
			return cfg, g.Err
		}
		if g.fromEnv && g.Target.IsZero() && (g.Name == "until" || g.Name == "delay") {
			holdIsOff = true
		}
	}
	var warnings []string
	for _, g := range l.Given {
		need := g.Tag.Get("needs")
		without, remedy := unmet(need, &cfg)
		if without == "" {
			continue
		}
		vain := fmt.Errorf("%v has no effect %s", g, without)
		switch {
		case holdIsOff && need != "health":
		case g.fromEnv:
			warnings = append(warnings, fmt.Sprintf("%v: %s", vain, remedy))
		default:
			return cfg, &shim.FlagError{Flag: g.Name, Err: vain, Remedy: remedy + ", or leave it out"}
		}
		g.Target.SetZero()
	}
	cfg = l.Values()
	cfg.Warnings = append(cfg.Warnings, warnings...)
	return cfg, nil
}

// Tolerant returns the configuration of a preStop hook, of all that is right on the line. What it leaves
// out is in Faults. A hook that lacks its hold for a fault holds until quiet, or not at all if the grace
// period leaves no time to: the kubelet kills a hook that outlives it.
func (l *Line) Tolerant() shim.Config {
	for {
		cfg, err := l.Config()
		if len(l.Faults) > 0 && !cfg.Holds() {
			cfg.Until = shim.Quiet
		}
		if err == nil {
			_, err = shim.Review(cfg)
		}
		if err == nil {
			return cfg
		}
		fault := &shim.FlagError{Err: err}
		errors.As(err, &fault)
		l.Faults = append(l.Faults, fault)
		noTime := fault.Flag == "grace-period" && cfg.GracePeriod > 0
		if noTime || !l.gave(fault.Flag) {
			rest := shim.Config{Env: cfg.Env, Level: shim.Warn, JSON: cfg.JSON}
			if !noTime {
				rest.Until = shim.Quiet
			}
			return rest
		}
		l.Given = slices.DeleteFunc(l.Given, func(g Given) bool {
			if g.Name == fault.Flag {
				g.Target.SetZero()
			}
			return g.Name == fault.Flag
		})
	}
}

// unmet returns what cfg lacks of what a flag needs to have an effect, and the remedy; "": nothing.
func unmet(need string, cfg *shim.Config) (without, remedy string) {
	switch {
	case need == "hold" && !cfg.Holds():
		return "without a hold", "give --delay (LAMEDUCK_DELAY) or --until (LAMEDUCK_UNTIL) too"
	case need == "until" && cfg.Until == shim.Elapsed:
		return "unless the hold waits for traffic", "give --until (LAMEDUCK_UNTIL) too"
	case need == "quiet" && cfg.Until != shim.Quiet && cfg.Until != shim.Drained:
		return "unless the hold waits for clients that stay", "give --until=quiet (LAMEDUCK_UNTIL) too"
	case need == "health" && cfg.Health == nil:
		return "alone", "give --health (LAMEDUCK_HEALTH) too"
	}
	return "", ""
}
