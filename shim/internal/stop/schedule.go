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
	Signal  sig.Signal
	Stop    bool
	Wait    time.Duration
	Forever bool
}

// String is the step as --stop-schedule has it.
func (s Step) String() string {
	switch {
	case s.Forever:
		return "forever"
	case s.Stop:
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

// sends reports whether the step is a signal.
func (s Step) sends() bool { return s.Signal != 0 || s.Stop }

// Last is the time from the first signal to the last one. What is repeated for ever
// is not counted.
func (s Schedule) Last() (last time.Duration) {
	s.each(func(_ Step, at time.Duration) { last = at })
	return last
}

// Kill is the time from the first signal to the first KILL, if there is one.
func (s Schedule) Kill() (at time.Duration, named bool) {
	s.each(func(step Step, then time.Duration) {
		if step.Signal == sig.KILL && !named {
			at, named = then, true
		}
	})
	return at, named
}

// CutOff is the first signal other than KILL that a KILL so long after the first
// signal would cut off, and when that signal is due. What forever repeats counts
// once: the first round has to come about.
func (s Schedule) CutOff(kill time.Duration) (step Step, at time.Duration, found bool) {
	began := false
	for _, step := range s {
		switch {
		case step.sends() && step.Signal != sig.KILL && began && at >= kill:
			return step, at, true
		case step.sends():
			began = true
		case began:
			at += step.Wait
		}
	}
	return Step{}, 0, false
}

// AfterKill is the first signal other than KILL that follows a KILL, and that no
// command lives to see.
func (s Schedule) AfterKill() (step Step, found bool) {
	killed := false
	for _, step := range s {
		switch {
		case step.Signal == sig.KILL:
			killed = true
		case step.sends() && killed:
			return step, true
		}
	}
	return Step{}, false
}

// each calls visit with every signal, and when it is sent: since the first one.
func (s Schedule) each(visit func(step Step, at time.Duration)) {
	var at time.Duration
	began := false
	for _, step := range s {
		switch {
		case step.Forever:
			return
		case step.sends():
			began = true
			visit(step, at)
		case began:
			at += step.Wait
		}
	}
}

// Lead is the time that passes before the first signal.
func (s Schedule) Lead() (lead time.Duration) {
	for _, step := range s {
		if step.sends() {
			return lead
		}
		lead += step.Wait
	}
	return lead
}

// Endless reports whether the schedule repeats something without a wait. What
// follows the last forever is what is repeated.
func (s Schedule) Endless() bool {
	endless := false
	for _, step := range s {
		endless = (endless || step.Forever) && (step.Forever || step.Wait == 0)
	}
	return endless
}

// with is the schedule with the stop signal put in.
func (s Schedule) with(signal sig.Signal) Schedule {
	filled := slices.Clone(s)
	for i := range filled {
		if filled[i].Stop {
			filled[i] = Step{Signal: signal}
		}
	}
	return filled
}

// first is the schedule's first signal, or else that one.
func (s Schedule) first(or sig.Signal) sig.Signal {
	for _, step := range s {
		if step.Signal != 0 {
			return step.Signal
		}
	}
	return or
}

// begun is the schedule with another first signal, which is not sent again.
func (s Schedule) begun(signal sig.Signal) Schedule {
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
	Stops sig.Set
	Steps Schedule
}

// steps is what to do after the hold that the signal s began, which is rewritten
// as to.
func (c *Config) steps(s, to sig.Signal) Schedule {
	signal := to
	if to == s {
		signal = c.Preset.Steps.first(to)
	}
	switch {
	case c.Schedule != nil:
		return c.Schedule.with(signal)
	case signal != c.Preset.Steps.first(0):
		return c.Preset.Steps.begun(signal)
	}
	return c.Preset.Steps
}

// Steps is what would be done after a hold that s begins.
func (c *Config) Steps(s sig.Signal) Schedule {
	to, _ := c.Rewrites.Of(s)
	return c.steps(s, to)
}
