package stop

import (
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Step is one thing to do after the hold: send Signal, send what the stop would
// send without a schedule, wait, or repeat all that follows for ever.
type Step struct {
	Signal     sig.Signal
	StopSignal bool
	Wait       time.Duration
	Forever    bool
}

// String is the step as --stop-schedule has it.
func (s Step) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.StopSignal:
		return "the stop signal"
	case s.Signal != 0:
		return s.Signal.String()
	}
	return s.Wait.String()
}

// Schedule is what to do after the hold, in order; see --retry of
// start-stop-daemon(8).
type Schedule []Step

// String is the schedule as --stop-schedule has it: "USR1/30s/TERM".
func (s Schedule) String() string {
	var words []string
	for _, step := range s {
		words = append(words, step.String())
	}
	return strings.Join(words, "/")
}

// isSignal reports whether the step is a signal.
func (s Step) isSignal() bool { return s.Signal != 0 || s.StopSignal }

// TimeToLast is the time from the first signal to the last one. What is repeated for ever
// is not counted.
func (s Schedule) TimeToLast() (last time.Duration) {
	s.eachSignal(func(_ Step, at time.Duration) { last = at })
	return last
}

// TimeToKill is the time from the first signal to the first KILL, if there is one.
func (s Schedule) TimeToKill() (at time.Duration, named bool) {
	s.eachSignal(func(step Step, then time.Duration) {
		if step.Signal == sig.KILL && !named {
			at, named = then, true
		}
	})
	return at, named
}

// CutOffBy is the first signal other than KILL that a KILL so long after the first
// signal would cut off, and when that signal is due. What forever repeats counts
// once: the first round has to come about.
func (s Schedule) CutOffBy(kill time.Duration) (step Step, at time.Duration, found bool) {
	began := false
	for _, step := range s {
		switch {
		case step.isSignal() && step.Signal != sig.KILL && began && at >= kill:
			return step, at, true
		case step.isSignal():
			began = true
		case began:
			at += step.Wait
		}
	}
	return Step{}, 0, false
}

// SignalAfterKill is the first signal other than KILL that follows a KILL, and that no
// command lives to see.
func (s Schedule) SignalAfterKill() (step Step, found bool) {
	killed := false
	for _, step := range s {
		switch {
		case step.Signal == sig.KILL:
			killed = true
		case step.isSignal() && killed:
			return step, true
		}
	}
	return Step{}, false
}

// eachSignal calls visit with every signal, and when it is sent: since the first one.
func (s Schedule) eachSignal(visit func(step Step, at time.Duration)) {
	var at time.Duration
	began := false
	for _, step := range s {
		switch {
		case step.Forever:
			return
		case step.isSignal():
			began = true
			visit(step, at)
		case began:
			at += step.Wait
		}
	}
}

// InitialWait is the time that passes before the first signal.
func (s Schedule) InitialWait() (lead time.Duration) {
	for _, step := range s {
		if step.isSignal() {
			return lead
		}
		lead += step.Wait
	}
	return lead
}

// LoopsWithoutWait reports whether the schedule repeats something without a wait. What
// follows the last forever is what is repeated.
func (s Schedule) LoopsWithoutWait() bool {
	endless := false
	for _, step := range s {
		endless = (endless || step.Forever) && (step.Forever || step.Wait == 0)
	}
	return endless
}

// withStopSignal is the schedule with the stop signal put in.
func (s Schedule) withStopSignal(signal sig.Signal) Schedule {
	filled := slices.Clone(s)
	for i := range filled {
		if filled[i].StopSignal {
			filled[i] = Step{Signal: signal}
		}
	}
	return filled
}

// firstSignal is the schedule's first signal, or else that one.
func (s Schedule) firstSignal(or sig.Signal) sig.Signal {
	for _, step := range s {
		if step.Signal != 0 {
			return step.Signal
		}
	}
	return or
}

// startingWith is the schedule with another first signal, which is not sent again.
func (s Schedule) startingWith(signal sig.Signal) Schedule {
	begun := Schedule{{Signal: signal}}
	for _, step := range s[min(len(s), 1):] {
		if step.Signal != signal {
			begun = append(begun, step)
		}
	}
	return begun
}

// Preset is what a known server expects: further stop signals, and a schedule.
type Preset struct {
	StopSignals sig.Set
	Steps       Schedule
}

// resolveSchedule is what to do after the hold that the signal s began, which is rewritten
// as to.
func (c *Config) resolveSchedule(s, to sig.Signal) Schedule {
	signal := to
	if to == s {
		signal = c.Preset.Steps.firstSignal(to)
	}
	switch {
	case c.Schedule != nil:
		return c.Schedule.withStopSignal(signal)
	case signal != c.Preset.Steps.firstSignal(0):
		return c.Preset.Steps.startingWith(signal)
	}
	return c.Preset.Steps
}

// ScheduleFor is what would be done after a hold that s begins.
func (c *Config) ScheduleFor(s sig.Signal) Schedule {
	to, _ := c.Rewrites.Of(s)
	return c.resolveSchedule(s, to)
}
