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

// String returns the step as --stop-schedule spells it. A signal without a name, as 32,
// has a dash: a bare number is a duration.
func (s Step) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.Signal == 0:
		return s.Wait.String()
	}
	name := s.Signal.String()
	if name[0] <= '9' {
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
	if len(s) > 1 && s[0].StopSignal { // given as a single duration
		return s[1].String()
	}
	var words []string
	for _, step := range s {
		words = append(words, step.String())
	}
	return strings.Join(words, "/")
}

// signals yields every signal, and its time. Steps after forever count once.
func (s Schedule) signals(yield func(step Step, at time.Duration) bool) {
	var at time.Duration
	for _, step := range s {
		at += step.Wait
		if step.isSignal() && !yield(step, at) {
			return
		}
	}
}

// TimeToEnd returns the time from the first signal to the first KILL, that after a time killAfter if there
// is one, or to the last signal if there is no KILL, before any forever.
func (s Schedule) TimeToEnd(killAfter time.Duration) (end time.Duration, kills bool) {
	if killAfter > 0 {
		return killAfter, true
	}
	once := s
	if i := slices.Index(s, Step{Forever: true}); i >= 0 {
		once = s[:i]
	}
	for step, at := range once.signals {
		end = at - s.InitialWait()
		if step.Signal == sig.KILL {
			return end, true
		}
	}
	return end, false
}

// Kills reports whether the schedule names KILL.
func (s Schedule) Kills() bool { return slices.Contains(s, Step{Signal: sig.KILL}) }

// CutOffBy returns the first signal of a schedule without KILL that would be due when the
// command is killed, kill after the first signal, and the time from the first signal until
// step is due. Steps after forever count once: the first round must take place.
func (s Schedule) CutOffBy(kill time.Duration) (step Step, at time.Duration, found bool) {
	for step, at := range s.signals {
		if at -= s.InitialWait(); at >= kill {
			return step, at, true
		}
	}
	return Step{}, 0, false
}

// InitialWait returns the time before the first signal.
func (s Schedule) InitialWait() time.Duration {
	for _, at := range s.signals {
		return at
	}
	return 0
}

// LoopsWithoutWait reports whether the steps after the last forever contain no wait.
func (s Schedule) LoopsWithoutWait() bool {
	loops := false
	for _, step := range s {
		loops = (loops || step.Forever) && (step.Forever || step.Wait == 0)
	}
	return loops
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

// ScheduleFor returns the steps after a hold triggered by s. The stop signal is the first
// of: the rewrite of s (to s as well), the preset's signal, s. A preset's later steps do not repeat it.
func (c *Config) ScheduleFor(s sig.Signal) Schedule {
	signal, given := c.Rewrites.Of(s)
	if !given {
		signal = c.Preset.FirstSignal(s)
	}
	first := Step{Signal: signal}
	if c.Schedule == nil {
		later := slices.Clone(c.Preset[min(len(c.Preset), 1):])
		isFirst := func(step Step) bool { return step == first }
		return slices.Concat(Schedule{first}, slices.DeleteFunc(later, isFirst))
	}
	steps := slices.Clone(c.Schedule)
	if i := slices.Index(steps, Step{StopSignal: true}); i >= 0 {
		steps[i] = first
	}
	return steps
}
