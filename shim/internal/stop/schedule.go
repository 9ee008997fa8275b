package stop

import (
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Step is one step of a schedule. One field is set, or none: a wait of 0.
type Step struct {
	Signal     sig.Signal    // send Signal
	StopSignal bool          // send the signal of a stop without a schedule
	Wait       time.Duration // wait
	Forever    bool          // repeat the following steps forever
}

// String returns the step as --stop-schedule spells it.
func (s Step) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.StopSignal:
		return "the stop signal"
	case s.Signal != 0:
		return signalWord(s.Signal)
	}
	return s.Wait.String()
}

// signalWord returns a signal as a step. A signal without a name, as 32, needs a dash:
// a bare number is a duration.
func signalWord(s sig.Signal) string {
	name := s.String()
	if name[0] >= '0' && name[0] <= '9' {
		return "-" + name
	}
	return name
}

// isSignal reports whether the step sends a signal.
func (s Step) isSignal() bool { return s.Signal != 0 || s.StopSignal }

// Schedule is the list of steps after the hold; see --retry in start-stop-daemon(8).
type Schedule []Step

// String returns the schedule as --stop-schedule spells it: "USR1/30s/TERM".
func (s Schedule) String() string {
	var words []string
	for _, step := range s {
		words = append(words, step.String())
	}
	return strings.Join(words, "/")
}

// TimeToLast returns the time from the first signal to the last before any forever.
func (s Schedule) TimeToLast() (last time.Duration) {
	s.eachSignal(func(_ Step, at time.Duration) { last = at })
	return last
}

// TimeToKill returns the time from the first signal to the first KILL before any
// forever.
func (s Schedule) TimeToKill() (at time.Duration, found bool) {
	s.eachSignal(func(step Step, then time.Duration) {
		if step.Signal == sig.KILL && !found {
			at, found = then, true
		}
	})
	return at, found
}

// Kills reports whether the schedule names KILL.
func (s Schedule) Kills() bool { return slices.Contains(s, Step{Signal: sig.KILL}) }

// CutOffBy returns the first signal of a schedule without KILL that would be due when the
// command is killed, kill after the first signal, and the time from the first signal until
// step is due. Steps after forever count once: the first round must take place.
func (s Schedule) CutOffBy(kill time.Duration) (step Step, at time.Duration, found bool) {
	began := false
	for _, step := range s {
		switch {
		case step.isSignal() && began && at >= kill:
			return step, at, true
		case step.isSignal():
			began = true
		case began:
			at += step.Wait
		}
	}
	return Step{}, 0, false
}

// signalAfterKill returns the first signal other than KILL after a KILL, useless since
// the command is dead.
func (s Schedule) signalAfterKill() (step Step, found bool) {
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

// eachSignal calls visit with every signal before any forever, and the time since the
// first signal.
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

// InitialWait returns the time before the first signal.
func (s Schedule) InitialWait() (wait time.Duration) {
	for _, step := range s {
		if step.isSignal() {
			return wait
		}
		wait += step.Wait
	}
	return wait
}

// LoopsWithoutWait reports whether the steps after the last forever contain no wait.
func (s Schedule) LoopsWithoutWait() bool {
	loops := false
	for _, step := range s {
		loops = (loops || step.Forever) && (step.Forever || step.Wait == 0)
	}
	return loops
}

// withStopSignal returns the schedule with signal in place of each StopSignal.
func (s Schedule) withStopSignal(signal sig.Signal) Schedule {
	filled := slices.Clone(s)
	for i := range filled {
		if filled[i].StopSignal {
			filled[i] = Step{Signal: signal}
		}
	}
	return filled
}

// FirstSignal returns the first signal of the schedule, or fallback if the schedule
// has no signal.
func (s Schedule) FirstSignal(fallback sig.Signal) sig.Signal {
	for _, step := range s {
		if step.Signal != 0 {
			return step.Signal
		}
	}
	return fallback
}

// startingWith returns the schedule with signal as its first step, and leaves signal
// out of the later steps.
func (s Schedule) startingWith(signal sig.Signal) Schedule {
	steps := Schedule{{Signal: signal}}
	for _, step := range s[min(len(s), 1):] {
		if step.Signal != signal {
			steps = append(steps, step)
		}
	}
	return steps
}

// Preset is what a known server expects at a stop.
type Preset struct {
	StopSignals sig.Set // beside Config.StopSignals
	Steps       Schedule
}

// resolveSchedule returns the steps after a hold triggered by s, which is rewritten as
// to. The stop signal is the first of: the rewrite (of s to s as well), the preset's
// signal, s.
func (c *Config) resolveSchedule(s, to sig.Signal) Schedule {
	signal := to
	if to == s && !c.Rewrites.Given().Has(s) {
		signal = c.Preset.Steps.FirstSignal(to)
	}
	switch {
	case c.Schedule != nil:
		return c.Schedule.withStopSignal(signal)
	case signal != c.Preset.Steps.FirstSignal(0):
		return c.Preset.Steps.startingWith(signal)
	}
	return c.Preset.Steps
}

// ScheduleFor returns the steps after a hold triggered by s.
func (c *Config) ScheduleFor(s sig.Signal) Schedule {
	to, _ := c.Rewrites.Of(s)
	return c.resolveSchedule(s, to)
}
