package stop

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// MaxDuration is more than any orchestrator waits: a year.
const MaxDuration = 365 * 24 * time.Hour

// ParseDuration reads a Go duration or a bare number of seconds, as sleep(1) takes it.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if _, numErr := strconv.ParseFloat(text, 64); numErr == nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d < 0 || d > MaxDuration {
		return 0, fmt.Errorf("invalid duration %q: give seconds (10) or units (1m30s, 500ms), at most a year",
			text)
	}
	return d, nil
}

// ParseSchedule reads a schedule in the form of start-stop-daemon(8)'s --retry. A single
// duration means the stop signal, and KILL that much later.
func ParseSchedule(text string) (Schedule, error) {
	var schedule Schedule
	for word := range strings.SplitSeq(text, "/") {
		step, err := parseStep(word)
		if err != nil {
			return nil, err
		}
		if step.Forever && slices.Contains(schedule, step) {
			return nil, errors.New("forever is given twice: the first forever repeats everything that follows")
		}
		schedule = append(schedule, step)
	}
	if len(schedule) == 1 && schedule[0].Wait > 0 {
		wait := schedule[0]
		return Schedule{{StopSignal: true}, wait, {Signal: sig.KILL}, wait}, nil
	}
	if schedule.FirstSignal(0) == 0 {
		return nil, errors.New("the schedule sends no signal: give at least one, as in USR1/30s/TERM")
	}
	killed := false
	for step := range schedule.signals {
		if killed && step.Signal != sig.KILL {
			return nil, fmt.Errorf("%v comes after KILL, which ends the command: put KILL last", step)
		}
		killed = killed || step.Signal == sig.KILL
	}
	return schedule, nil
}

// parseStep reads a signal's name with or without a dash, a signal's number with a dash,
// a duration, or forever.
func parseStep(word string) (Step, error) {
	if word == "forever" {
		return Step{Forever: true}, nil
	}
	if wait, err := ParseDuration(word); err == nil {
		return Step{Wait: wait}, nil
	}
	s, err := sig.Parse(strings.TrimPrefix(word, "-"))
	if err != nil {
		return Step{}, fmt.Errorf("invalid step %q: give a signal (TERM, -15), a time to wait (30, 1m) or forever, as "+
			"in USR1/30s/TERM", word)
	}
	return Step{Signal: s}, nil
}
