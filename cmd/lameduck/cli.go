package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lameduck-init/lameduck/shim"
)

// cli is the grammar. Values stay the words that were given until config reads
// them, so that an error can name what it came from. All are lists; where only
// one value makes sense the last one counts.
type cli struct {
	Rewrite       []string `short:"r" sep:"none"`
	StopSignal    []string `sep:"none"`
	Group         bool     `short:"g"`
	DropUnhandled bool

	Delay       []string `short:"d" sep:"none"`
	Until       []string `short:"u" sep:"none"`
	QuietFor    []string `sep:"none"`
	MaxSilence  []string `sep:"none"`
	MaxDelay    []string `sep:"none"`
	GracePeriod []string `sep:"none"`
	Linger      []string `sep:"none"`

	CountPort    []string `sep:"none"`
	IgnorePort   []string `sep:"none"`
	IgnorePeer   []string `sep:"none"`
	IgnoreProbes bool

	ExitCode []string `short:"e" sep:"none"`

	Subreaper         *bool    `short:"s"`
	ParentDeathSignal []string `sep:"none"`

	LogLevel []string `sep:"none"`

	Version bool
	Help    bool `short:"h"`
	HelpAll bool

	Command []string `arg:"" optional:"" passthrough:"partial"`
}

// twinless are the flags without an environment twin: they ask, and run nothing.
var twinless = []string{"version", "help", "help-all"}

// parse reads the command line, and the environment's twins for what it leaves
// out.
func parse(args, env []string) (*cli, *twins, error) {
	var c cli
	k, err := kong.New(&c, kong.Name("lameduck"), kong.NoDefaultHelp())
	if err != nil {
		return nil, nil, err
	}
	t := readTwins(env, k.Model.Flags)
	kong.Resolvers(t).Apply(k)
	if _, err := k.Parse(args); err != nil {
		return nil, nil, fmt.Errorf("%w (lameduck --help-all lists the flags)", err)
	}
	c.Command = dropDashes(c.Command)
	return &c, t, nil
}

// config is the bridge from the words to what they mean.
func (c *cli) config(t *twins) (cfg shim.Config, err error) {
	cfg = shim.Config{
		Command: c.Command, Env: t.rest, Level: shim.Warn, Warnings: t.unknown,
		Group: c.Group, DropUnhandled: c.DropUnhandled, Subreaper: choice(c.Subreaper),
	}
	if cfg.Rewrites, err = list(t, "rewrite", c.Rewrite, shim.ParseRewrite); err != nil {
		return cfg, err
	}
	if cfg.StopSignals, err = list(t, "stop-signal", c.StopSignal, shim.ParseSignal); err != nil {
		return cfg, err
	}
	if cfg.ExitCodes, err = list(t, "exit-code", c.ExitCode, parseExitMap); err != nil {
		return cfg, err
	}
	if err = one(t, "delay", c.Delay, parseDuration, &cfg.Delay); err != nil {
		return cfg, err
	}
	if err = c.traffic(t, &cfg); err != nil {
		return cfg, err
	}
	cfg.DelayGiven = len(c.Delay) > 0 && cfg.Until != shim.Elapsed
	if err = one(t, "grace-period", c.GracePeriod, parseGrace, &cfg.GracePeriod); err != nil {
		return cfg, err
	}
	if err = one(t, "linger", c.Linger, parseDuration, &cfg.Linger); err != nil {
		return cfg, err
	}
	if err = one(t, "parent-death-signal", c.ParentDeathSignal, shim.ParseSignal, &cfg.ParentDeathSignal); err != nil {
		return cfg, err
	}
	if err = one(t, "log-level", c.LogLevel, parseLevel, &cfg.Level); err != nil {
		return cfg, err
	}
	if len(c.GracePeriod) > 0 && cfg.Delay == 0 && cfg.Until == shim.Elapsed && cfg.Linger == 0 {
		err = t.noEffect(&cfg, "grace-period", cfg.GracePeriod, "without a hold: give --delay too")
	}
	return cfg, err
}

// traffic reads what makes a hold adaptive, and refuses what would have no effect.
func (c *cli) traffic(t *twins, cfg *shim.Config) (err error) {
	if err = one(t, "until", c.Until, parseUntil, &cfg.Until); err != nil {
		return err
	}
	for _, d := range []struct {
		flag   string
		words  []string
		target *time.Duration
	}{{"quiet-for", c.QuietFor, &cfg.QuietFor}, {"max-silence", c.MaxSilence, &cfg.MaxSilence}, {"max-delay", c.MaxDelay, &cfg.MaxDelay}} {
		if err = one(t, d.flag, d.words, parseLength, d.target); err != nil {
			return err
		}
	}
	if cfg.CountPorts, err = list(t, "count-port", c.CountPort, parsePort); err != nil {
		return err
	}
	if cfg.IgnorePorts, err = list(t, "ignore-port", c.IgnorePort, parsePort); err != nil {
		return err
	}
	if cfg.IgnorePeers, err = list(t, "ignore-peer", c.IgnorePeer, parsePeer); err != nil {
		return err
	}
	cfg.IgnoreProbes = c.IgnoreProbes
	if cfg.Until != shim.Elapsed {
		return nil
	}
	return c.notAdaptive(t, cfg)
}

// notAdaptive is the first flag that only an adaptive hold would heed.
func (c *cli) notAdaptive(t *twins, cfg *shim.Config) error {
	if len(c.MaxDelay) > 0 && cfg.Delay == 0 {
		if err := t.noEffect(cfg, "max-delay", cfg.MaxDelay, "without a hold: give --until too"); err != nil {
			return err
		}
	}
	given := map[string][]string{"quiet-for": c.QuietFor, "max-silence": c.MaxSilence,
		"count-port": c.CountPort, "ignore-port": c.IgnorePort, "ignore-peer": c.IgnorePeer}
	if c.IgnoreProbes {
		given["ignore-probes"] = []string{"true"}
	}
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if words := given[flag]; len(words) > 0 {
			if err := t.noEffect(cfg, flag, words[len(words)-1], "unless the hold waits for traffic: give --until too"); err != nil {
				return err
			}
		}
	}
	cfg.QuietFor, cfg.MaxSilence = 0, 0
	if cfg.Delay == 0 {
		cfg.MaxDelay = 0
	}
	return nil
}

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
		return fmt.Errorf("%s=%s: %w", t.source(flag), word, err)
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
				return nil, fmt.Errorf("%s=%s: %w", t.source(flag), word, err)
			}
			values = append(values, value)
		}
	}
	return values, nil
}

// longest is a year, more than any orchestrator waits.
const longest = 365 * 24 * time.Hour

// parseDuration reads a Go duration or a bare number of seconds.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if _, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 || d > longest {
		return 0, fmt.Errorf("%q is no duration: give seconds (10) or units (1m30s, 500ms), from 0 to %v", text, longest)
	}
	return d, nil
}

// parseLength reads a duration that cannot be nothing.
func parseLength(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && d == 0 {
		return 0, fmt.Errorf("%q is no time at all: give seconds (3) or units (500ms)", text)
	}
	return d, err
}

// parseUntil reads what ends the hold.
func parseUntil(text string) (shim.Condition, error) {
	switch c := shim.Condition(text); c {
	case "elapsed":
		return shim.Elapsed, nil
	case shim.Settled, shim.Quiet, shim.Drained:
		return c, nil
	}
	return "", fmt.Errorf("%q is nothing to wait for: give elapsed, settled, quiet or drained", text)
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%q is no port: numbers go from 1 to 65535", text)
	}
	return uint16(port), nil
}

// parsePeer reads an address, or a range of them.
func parsePeer(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	peers, err := netip.ParsePrefix(text)
	if err != nil || peers.Addr().Is4In6() {
		return peers, fmt.Errorf("%q is no peer: give an address (10.0.0.1) or a range (10.0.0.0/8, fd00::/8)", text)
	}
	return peers.Masked(), nil
}

// parseGrace reads a grace period, which cannot be nothing.
func parseGrace(text string) (time.Duration, error) {
	d, err := parseDuration(text)
	if err == nil && d < time.Second {
		return 0, fmt.Errorf("a grace period is at least 1s: give what the orchestrator gives (terminationGracePeriodSeconds, docker stop -t)")
	}
	return d, err
}

// parseExitMap reads FROM[:TO], where TO is 0 when left out.
func parseExitMap(text string) (m shim.ExitMap, err error) {
	left, right, mapped := strings.Cut(text, ":")
	if m.From, err = parseExitCode(left); err == nil && mapped {
		m.To, err = parseExitCode(right)
	}
	return m, err
}

func parseExitCode(text string) (int, error) {
	code, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is no exit code: give FROM or FROM:TO, each from 0 to 255, as in 143 or 143:0", text)
	}
	return int(code), nil
}

func parseLevel(text string) (shim.Level, error) {
	for level, name := range []string{"error", "warn", "info", "debug"} {
		if text == name {
			return shim.Level(level), nil
		}
	}
	return 0, fmt.Errorf("%q is no level: give error, warn, info or debug", text)
}
