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

// parseLength reads a duration that cannot be nothing.
func parseLength(text string) (time.Duration, error) {
	d, err := shim.ParseDuration(text)
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

// parsePreset reads a preset's name, or auto.
func parsePreset(text string) (string, error) {
	name, err := shim.ParsePreset(text)
	if err != nil {
		return "", fmt.Errorf("%w: did you mean %s? (lameduck presets lists them)", err, nearest(text, presetNames()))
	}
	return name, nil
}

// parseWords splits a command into words as a shell does: blanks part them, unless
// they are quoted or follow a backslash. Nothing is expanded. A program that is
// named by its path is found wherever lameduck will be.
func parseWords(text string) (words []string, err error) {
	if words, err = split(text); err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("it names no program: give one, with its arguments")
	}
	if strings.Contains(words[0], "/") {
		words[0], err = filepath.Abs(words[0])
	}
	return words, err
}

// split knows sh(1)'s quoting: in single quotes everything is itself, in double
// quotes a backslash quotes itself, the quote, $ and `.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote byte
	begun, escaped := false, false
	for i := range len(text) { // bytes, which need not be UTF-8
		c := text[i]
		switch {
		case escaped:
			if quote == '"' && !strings.Contains("\\\"$`", text[i:i+1]) {
				word.WriteByte('\\')
			}
			word.WriteByte(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case strings.Contains(" \t\n", text[i:i+1]):
			if begun {
				words, begun = append(words, word.String()), false
				word.Reset()
			}
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("a %c is not closed", quote)
	case escaped:
		return nil, fmt.Errorf("nothing follows the last backslash")
	case begun:
		words = append(words, word.String())
	}
	return words, nil
}

// parseGrace reads a grace period, which cannot be nothing.
func parseGrace(text string) (time.Duration, error) {
	d, err := shim.ParseDuration(text)
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
