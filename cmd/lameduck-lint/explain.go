package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// explained is lameduck --explain, parsed: the linter has no arithmetic of its own.
type explained struct {
	sequence      bool          // a hold or a stop sequence was asked for
	stops         []string      // the signals that begin the stop
	silence       time.Duration // the silence that an adaptive hold waits for
	longest       time.Duration // the ceiling of the hold
	presetUnknown bool          // --preset=auto: the preset is unknown before the start
}

var (
	startsRE  = regexp.MustCompile(`(?m)^on (.+?): (.*)$`)
	silenceRE = regexp.MustCompile(`(?:no new connection has come|nobody has connected or sent a byte) for ([\d.]+ s)`)
	longestRE = regexp.MustCompile(`, at most ([\d.]+ s)$|keeps serving for ([\d.]+ s)$`)
)

// explain returns what lameduck with cfg would do.
func explain(cfg shim.Config) (e explained, err error) {
	text, _, err := shim.Explain(cfg)
	starts := startsRE.FindStringSubmatch(text)
	if err != nil || starts == nil { // without starts no signal begins a stop
		return e, err
	}
	e.sequence = !strings.Contains(starts[2], "passes it on at once")
	e.stops = strings.Split(strings.ReplaceAll(starts[1], " or ", ", "), ", ")
	e.presetUnknown = strings.Contains(text, "preset auto: ")
	e.silence = seconds(silenceRE, starts[2])
	e.longest = seconds(longestRE, starts[2])
	return e, nil
}

// seconds returns the time in the first match of re, or 0.
func seconds(re *regexp.Regexp, text string) time.Duration {
	found := re.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	d, _ := time.ParseDuration(strings.ReplaceAll(strings.Join(found[1:], ""), " ", ""))
	return d
}

// begins reports whether a signal begins a stop, or may with --preset=auto.
func (e explained) begins(s shim.Signal) bool {
	return slices.Contains(e.stops, s.String()) || e.presetUnknown && slices.ContainsFunc(shim.Presets(), func(p shim.Preset) bool {
		return slices.Contains(p.StopSignals, s)
	})
}
