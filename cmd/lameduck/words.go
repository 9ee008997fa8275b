package main

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// The values of flags, as people write them.

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

// parseFormat reads the form of what is said, and is whether that is JSON.
func parseFormat(text string) (json bool, err error) {
	switch text {
	case "text":
		return false, nil
	case "json":
		return true, nil
	}
	return false, fmt.Errorf("%q is no format: give text or json", text)
}

// parsePath reads a path, which counts from where lameduck is started.
func parsePath(text string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("it is empty: give a path")
	}
	return filepath.Abs(text)
}

// parseTerminationLog reads a path, or none.
func parseTerminationLog(text string) (string, error) {
	if text == shim.NoTerminationLog {
		return text, nil
	}
	return parsePath(text)
}
