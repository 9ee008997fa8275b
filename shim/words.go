package shim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// ParseSignal reads a signal's name or number.
func ParseSignal(text string) (Signal, error) { return sig.Parse(text) }

// ParseRewrite reads FROM:TO, or FROM:0 to drop FROM. FROM must be a signal that this
// build can catch.
func ParseRewrite(text string) (Rewrite, error) {
	r, err := sig.ParseRewrite(text)
	if err != nil {
		return Rewrite{}, err
	}
	if why := sigcatch.Uncatchable(r.From); why != "" {
		return Rewrite{}, fmt.Errorf("%v never reaches lameduck to be rewritten: %s", r.From, why)
	}
	return r, nil
}

// longestTime is a year, more than any orchestrator waits.
const longestTime = 365 * 24 * time.Hour

// ParseDuration reads a Go duration or a bare number of seconds.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if _, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 || d > longestTime {
		return 0, fmt.Errorf("%q is no duration: give seconds (10) or units (1m30s, 500ms), from 0 to %v", text, longestTime)
	}
	return d, nil
}

// ParseSchedule reads what to send after the hold, in the form of start-stop-daemon(8)'s
// --retry. One duration alone means the stop signal, and KILL that much later.
func ParseSchedule(text string) (schedule Schedule, err error) {
	for word := range strings.SplitSeq(text, "/") {
		step, err := parseStep(word)
		if err != nil {
			return nil, err
		}
		if step.Forever && slices.Contains(schedule, step) {
			return nil, fmt.Errorf("it says forever twice: the first one repeats all that follows")
		}
		schedule = append(schedule, step)
	}
	if len(schedule) == 1 && schedule[0].Wait > 0 {
		wait := schedule[0]
		return Schedule{{StopSignal: true}, wait, {Signal: sig.KILL}, wait}, nil
	}
	if !slices.ContainsFunc(schedule, func(s Step) bool { return s.Signal != 0 }) {
		return nil, fmt.Errorf("it sends no signal: give one, as in USR1/30s/TERM")
	}
	if late, found := schedule.SignalAfterKill(); found {
		return nil, fmt.Errorf("%v comes after KILL, which ends the command: put KILL last", late)
	}
	return schedule, nil
}

// parseStep reads one item: a signal's name, with a dash or without, its number
// with one, a duration, or forever.
func parseStep(word string) (Step, error) {
	name, dashed := strings.CutPrefix(word, "-")
	s, bad := sig.Parse(name)
	wait, late := ParseDuration(word)
	switch {
	case word == "forever":
		return Step{Forever: true}, nil
	case late == nil:
		return Step{Wait: wait}, nil
	case bad == nil && (dashed || !isNumber(name)):
		return Step{Signal: s}, nil
	}
	return Step{}, fmt.Errorf("%q is no step: give a signal (TERM, -15), a time to wait (30, 1m) or forever, as in USR1/30s/TERM", word)
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}
