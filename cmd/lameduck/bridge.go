package main

import (
	"fmt"
	"strings"

	"github.com/lameduck-init/lameduck/shim"
)

// config is the bridge from the words to what they mean.
func (c *cli) config(t *twins) (cfg shim.Config, err error) {
	cfg = shim.Config{
		Command: c.Command, Env: t.rest, Level: shim.Warn, Warnings: t.unknown, Spelling: t.spelling,
		Group: c.Group, DropUnhandled: c.DropUnhandled, Subreaper: choice(c.Subreaper),
	}
	if err = c.reportFlags.config(t, &cfg); err != nil { // first: errors are in its form
		return cfg, err
	}
	if cfg.Rewrites, err = list(t, "rewrite", c.Rewrite, shim.ParseRewrite); err != nil {
		return cfg, err
	}
	if cfg.StopSignals, err = list(t, "stop-signal", c.StopSignal, shim.ParseSignal); err != nil {
		return cfg, err
	}
	if err = one(t, "preset", c.Preset, parsePreset, &cfg.Preset); err != nil {
		return cfg, err
	}
	if cfg.ExitCodes, err = list(t, "exit-code", c.ExitCode, parseExitMap); err != nil {
		return cfg, err
	}
	if err = one(t, "stop-schedule", c.StopSchedule, shim.ParseSchedule, &cfg.Schedule); err != nil {
		return cfg, err
	}
	if err = one(t, "kill-after", c.KillAfter, parseLength, &cfg.KillAfter); err != nil {
		return cfg, err
	}
	if err = one(t, "alive-file", c.AliveFile, parsePath, &cfg.AliveFile); err != nil {
		return cfg, err
	}
	if err = c.health(t, &cfg); err != nil {
		return cfg, err
	}
	if err = one(t, "linger", c.Linger, shim.ParseDuration, &cfg.Linger); err != nil {
		return cfg, err
	}
	if err = one(t, "parent-death-signal", c.ParentDeathSignal, shim.ParseSignal, &cfg.ParentDeathSignal); err != nil {
		return cfg, err
	}
	return cfg, c.holdFlags.config(t, &cfg)
}

// health reads where health checks are answered, and how during a stop: a pod that
// is deleted should stay ready for as long as it serves.
func (c *cli) health(t *twins, cfg *shim.Config) (err error) {
	during := shim.HealthFail
	if set, _ := lookup(t.rest, "KUBERNETES_SERVICE_HOST"); set != "" {
		during = shim.HealthPass
	}
	if err = one(t, "health-during", c.HealthDuring, shim.ParseHealthMode, &during); err != nil {
		return err
	}
	switch {
	case len(c.Health) > 0:
		cfg.Health, cfg.HealthDuring = new(shim.HealthSpec), during
		return one(t, "health", c.Health, shim.ParseHealth, cfg.Health)
	case len(c.HealthDuring) > 0:
		return t.noEffect(cfg, "health-during", during, "without --health: give that too")
	}
	return nil
}

func (r *reportFlags) config(t *twins, cfg *shim.Config) (err error) {
	if err = one(t, "termination-log", r.TerminationLog, parseTerminationLog, &cfg.TerminationLog); err != nil {
		return err
	}
	if err = one(t, "log-level", r.LogLevel, parseLevel, &cfg.Level); err != nil {
		return err
	}
	return one(t, "log-format", r.LogFormat, parseFormat, &cfg.JSON)
}

// config reads how to hold, and refuses what would have no effect.
func (h *holdFlags) config(t *twins, cfg *shim.Config) (err error) {
	if err = one(t, "delay", h.Delay, shim.ParseDuration, &cfg.Delay); err != nil {
		return err
	}
	if err = one(t, "until", h.Until, parseUntil, &cfg.Until); err != nil {
		return err
	}
	if err = one(t, "max-delay", h.MaxDelay, parseLength, &cfg.MaxDelay); err != nil {
		return err
	}
	if err = one(t, "grace-period", h.GracePeriod, parseGrace, &cfg.GracePeriod); err != nil {
		return err
	}
	if err = one(t, "on-stop", h.OnStop, parseWords, &cfg.OnStop); err != nil {
		return err
	}
	for _, word := range h.WaitGone {
		var path string
		if err = one(t, "wait-gone", []string{word}, parsePath, &path); err != nil {
			return err
		}
		cfg.WaitGone = append(cfg.WaitGone, path)
	}
	if err = h.trafficFlags.config(t, cfg); err != nil {
		return err
	}
	cfg.DelayGiven = len(h.Delay) > 0 && cfg.Until != shim.Elapsed
	return h.idle(t, cfg)
}

func (f *trafficFlags) config(t *twins, cfg *shim.Config) (err error) {
	if err = one(t, "quiet-for", f.QuietFor, parseLength, &cfg.QuietFor); err != nil {
		return err
	}
	if err = one(t, "max-silence", f.MaxSilence, parseLength, &cfg.MaxSilence); err != nil {
		return err
	}
	if cfg.CountPorts, err = list(t, "count-port", f.CountPort, parsePort); err != nil {
		return err
	}
	if cfg.IgnorePorts, err = list(t, "ignore-port", f.IgnorePort, parsePort); err != nil {
		return err
	}
	cfg.IgnorePeers, err = list(t, "ignore-peer", f.IgnorePeer, parsePeer)
	cfg.IgnoreProbes = f.IgnoreProbes
	return err
}

// idle is the first flag that has no effect beside the others; one that came from
// the environment is put aside.
func (h *holdFlags) idle(t *twins, cfg *shim.Config) error {
	adaptive, holds := cfg.Until != shim.Elapsed, cfg.Holds()
	given := ""
	if h.IgnoreProbes {
		given = "true"
	}
	for _, f := range []struct {
		flag  string
		words []string
		heard bool
		why   string
		clear func()
	}{
		{"quiet-for", h.QuietFor, adaptive, untraffic, func() { cfg.QuietFor = 0 }},
		{"max-silence", h.MaxSilence, adaptive, untraffic, func() { cfg.MaxSilence = 0 }},
		{"ignore-probes", strings.Fields(given), adaptive, untraffic, func() { cfg.IgnoreProbes = false }},
		{"max-delay", h.MaxDelay, holds, unheld, func() { cfg.MaxDelay = 0 }},
		{"count-port", h.CountPort, holds, unheld, func() { cfg.CountPorts = nil }},
		{"ignore-port", h.IgnorePort, holds, unheld, func() { cfg.IgnorePorts = nil }},
		{"ignore-peer", h.IgnorePeer, holds, unheld, func() { cfg.IgnorePeers = nil }},
		{"grace-period", h.GracePeriod, holds || cfg.Schedule != nil || cfg.KillAfter > 0 || cfg.Preset != "" || cfg.Linger > 0, unheld, func() {}},
	} {
		if len(f.words) == 0 || f.heard {
			continue
		}
		if err := t.noEffect(cfg, f.flag, f.words[len(f.words)-1], f.why); err != nil {
			return err
		}
		f.clear()
	}
	return nil
}

// Why a flag has no effect.
const (
	unheld    = "without a hold: give --delay or --until too"
	untraffic = "unless the hold waits for traffic: give --until too"
)

// choice is what a flag says that works by itself where it is left out.
func choice(given *bool) shim.Choice {
	switch {
	case given == nil:
		return shim.Auto
	case *given:
		return shim.Yes
	}
	return shim.No
}

// one reads the value of a flag, if it was given, into target.
func one[T any](t *twins, flag string, words []string, read func(string) (T, error), target *T) error {
	if len(words) == 0 {
		return nil
	}
	word := words[len(words)-1]
	value, err := read(word)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", t.source(flag), shim.Quote(word), err)
	}
	*target = value
	return nil
}

// list reads the values of a flag that takes several, separated by commas.
func list[T any](t *twins, flag string, words []string, read func(string) (T, error)) (values []T, err error) {
	for _, word := range words {
		for item := range strings.SplitSeq(word, ",") {
			value, err := read(strings.TrimSpace(item))
			if err != nil {
				return nil, fmt.Errorf("%s=%s: %w", t.source(flag), shim.Quote(word), err)
			}
			values = append(values, value)
		}
	}
	return values, nil
}
