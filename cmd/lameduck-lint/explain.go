package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim"
)

// explained is what lameduck itself says (--explain) that it would do at a stop.
// It is read from the words, so that no figure here is a second opinion.
type explained struct {
	acts    bool          // there is a hold, or a sequence of its own
	stops   []string      // the signals that begin it
	silence time.Duration // what an adaptive hold waits for
	longest time.Duration // of the hold
	later   bool          // the preset is not known before it runs
}

var (
	startsRE  = regexp.MustCompile(`(?m)^on (.+?): (.*)$`)
	silenceRE = regexp.MustCompile(`(?:no new connection has come|nobody has connected or sent a byte) for ([\d.]+ s)`)
	longestRE = regexp.MustCompile(`, at most ([\d.]+ s)$|keeps serving for ([\d.]+ s)$`)
)

// explain asks lameduck.
func explain(cfg shim.Config) (e explained, err error) {
	text, _, err := shim.Explain(cfg)
	starts := startsRE.FindStringSubmatch(text)
	if err != nil || starts == nil { // or no signal begins a stop
		return e, err
	}
	e.acts = !strings.Contains(starts[2], "passes it on at once")
	e.stops = strings.Split(strings.ReplaceAll(starts[1], " or ", ", "), ", ")
	e.later = strings.Contains(text, "preset auto: ")
	e.silence = seconds(silenceRE, starts[2])
	e.longest = seconds(longestRE, starts[2])
	return e, nil
}

// seconds is the time that a pattern finds.
func seconds(re *regexp.Regexp, text string) time.Duration {
	found := re.FindStringSubmatch(text)
	if found == nil {
		return 0
	}
	d, _ := time.ParseDuration(strings.ReplaceAll(strings.Join(found[1:], ""), " ", ""))
	return d
}

// begins reports whether a signal begins a stop, or may, for all that is known.
func (e explained) begins(s shim.Signal) bool {
	return slices.Contains(e.stops, s.String()) || e.later && slices.ContainsFunc(shim.Presets(), func(p shim.Preset) bool {
		return slices.Contains(p.StopSignals, s)
	})
}
