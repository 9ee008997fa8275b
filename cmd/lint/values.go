package main

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/shell"

	"github.com/lameduck-init/lameduck/shim"
)

// setter puts a value, as people write it, into the configuration.
type setter func(c *shim.Config, text string) error

// one is for a flag of which the last value counts.
func one[T any](parse func(string) (T, error), field func(*shim.Config) *T) setter {
	return func(c *shim.Config, text string) (err error) {
		value, err := parse(text)
		if err == nil {
			*field(c) = value
		}
		return err
	}
}

// list is for a flag that takes several, separated by commas.
func list[T any](parse func(string) (T, error), field func(*shim.Config) *[]T) setter {
	return func(c *shim.Config, text string) error {
		for item := range strings.SplitSeq(text, ",") {
			value, err := parse(strings.TrimSpace(item))
			if err != nil {
				return err
			}
			*field(c) = append(*field(c), value)
		}
		return nil
	}
}

// setters are lameduck's flags, those aside that only ask.
var setters = map[string]setter{
	"rewrite":             list(shim.ParseRewrite, func(c *shim.Config) *[]shim.Rewrite { return &c.Rewrites }),
	"stop-signal":         list(shim.ParseSignal, func(c *shim.Config) *[]shim.Signal { return &c.StopSignals }),
	"preset":              one(parsePreset, func(c *shim.Config) *string { return &c.Preset }),
	"group":               one(parseBool, func(c *shim.Config) *bool { return &c.Group }),
	"drop-unhandled":      one(parseBool, func(c *shim.Config) *bool { return &c.DropUnhandled }),
	"delay":               one(shim.ParseDuration, func(c *shim.Config) *time.Duration { return &c.Delay }),
	"until":               one(parseUntil, func(c *shim.Config) *shim.Condition { return &c.Until }),
	"quiet-for":           one(parseLength, func(c *shim.Config) *time.Duration { return &c.QuietFor }),
	"max-silence":         one(parseLength, func(c *shim.Config) *time.Duration { return &c.MaxSilence }),
	"max-delay":           one(parseLength, func(c *shim.Config) *time.Duration { return &c.MaxDelay }),
	"grace-period":        one(parseGrace, func(c *shim.Config) *time.Duration { return &c.GracePeriod }),
	"count-port":          list(parsePort, func(c *shim.Config) *[]uint16 { return &c.CountPorts }),
	"ignore-port":         list(parsePort, func(c *shim.Config) *[]uint16 { return &c.IgnorePorts }),
	"ignore-peer":         list(parsePeer, func(c *shim.Config) *[]netip.Prefix { return &c.IgnorePeers }),
	"ignore-probes":       one(parseBool, func(c *shim.Config) *bool { return &c.IgnoreProbes }),
	"wait-gone":           many(parsePath, func(c *shim.Config) *[]string { return &c.WaitGone }),
	"on-stop":             one(parseCommand, func(c *shim.Config) *[]string { return &c.OnStop }),
	"stop-schedule":       one(shim.ParseSchedule, func(c *shim.Config) *shim.Schedule { return &c.Schedule }),
	"kill-after":          one(parseLength, func(c *shim.Config) *time.Duration { return &c.KillAfter }),
	"linger":              one(shim.ParseDuration, func(c *shim.Config) *time.Duration { return &c.Linger }),
	"exit-code":           list(parseExitMap, func(c *shim.Config) *[]shim.ExitMap { return &c.ExitCodes }),
	"alive-file":          one(parsePath, func(c *shim.Config) *string { return &c.AliveFile }),
	"health":              one(parseHealth, func(c *shim.Config) **shim.HealthSpec { return &c.Health }),
	"health-during":       one(shim.ParseHealthMode, func(c *shim.Config) *shim.HealthMode { return &c.HealthDuring }),
	"subreaper":           one(parseChoice, func(c *shim.Config) *shim.Choice { return &c.Subreaper }),
	"parent-death-signal": one(shim.ParseSignal, func(c *shim.Config) *shim.Signal { return &c.ParentDeathSignal }),
	"termination-log":     one(parsePath, func(c *shim.Config) *string { return &c.TerminationLog }),
	"log-level":           one(among("level", "error, warn, info or debug"), func(*shim.Config) *string { return new(string) }),
	"log-format":          one(among("format", "text or json"), func(*shim.Config) *string { return new(string) }),
}

// many is for a flag that may be given again, of which each value is a whole.
func many[T any](parse func(string) (T, error), field func(*shim.Config) *[]T) setter {
	return func(c *shim.Config, text string) error {
		value, err := parse(text)
		*field(c) = append(*field(c), value)
		return err
	}
}

func parsePreset(text string) (string, error) {
	name, err := shim.ParsePreset(text)
	if err == nil {
		return name, nil
	}
	names := map[string]bool{shim.AutoPreset: true}
	for _, p := range shim.Presets() {
		for _, name := range append(p.Aliases, p.Name) {
			names[name] = true
		}
	}
	return "", fmt.Errorf("%w: did you mean %s? (lameduck presets lists them)", err, nearest(text, names))
}

func parseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither: give true or false", text)
}

func parseChoice(text string) (shim.Choice, error) {
	yes, err := parseBool(text)
	if yes {
		return shim.Yes, err
	}
	return shim.No, err
}

// parseLength reads a duration that cannot be nothing.
func parseLength(text string) (time.Duration, error) {
	d, err := shim.ParseDuration(text)
	if err == nil && d == 0 {
		return 0, fmt.Errorf("%q is no time at all: give seconds (3) or units (500ms)", text)
	}
	return d, err
}

func parseGrace(text string) (time.Duration, error) {
	d, err := shim.ParseDuration(text)
	if err == nil && d < time.Second {
		return 0, errors.New("a grace period is at least 1s: give what the orchestrator gives (terminationGracePeriodSeconds, docker stop -t)")
	}
	return d, err
}

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

// parsePath keeps a path as it is in the container, of which the folder is not known.
func parsePath(text string) (string, error) {
	if text == "" {
		return "", errors.New("it is empty: give a path")
	}
	return path.Clean(text), nil
}

// parseCommand parts words as a shell does. Lameduck expands nothing: a dollar is
// one.
func parseCommand(text string) ([]string, error) {
	words, err := shell.Fields(strings.ReplaceAll(text, "$", `\$`), nil)
	if err == nil && len(words) == 0 {
		err = errors.New("it names no program: give one, with its arguments")
	}
	return words, err
}

func parseExitMap(text string) (m shim.ExitMap, err error) {
	from, to, mapped := strings.Cut(text, ":")
	if m.From, err = parseExitCode(from); err == nil && mapped {
		m.To, err = parseExitCode(to)
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

func parseHealth(text string) (*shim.HealthSpec, error) {
	spec, err := shim.ParseHealth(text)
	return &spec, err
}

// among reads one of some words.
func among(kind, words string) func(string) (string, error) {
	return func(text string) (string, error) {
		for word := range strings.SplitSeq(strings.ReplaceAll(words, " or ", ", "), ", ") {
			if text == word {
				return text, nil
			}
		}
		return "", fmt.Errorf("%q is no %s: give %s", text, kind, words)
	}
}
