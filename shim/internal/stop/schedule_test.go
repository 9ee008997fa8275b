package stop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// testSchedule reads a schedule without ParseSchedule's checks; "stop" is the stop signal.
func testSchedule(t *testing.T, text string) (list Schedule) {
	t.Helper()
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '/' }) {
		step, err := parseStep(word)
		switch {
		case word == "stop":
			step = Step{StopSignal: true}
		case err != nil:
			t.Fatal(err)
		}
		list = append(list, step)
	}
	return list
}

// TestScheduleTimes: the times of a schedule up to any forever, which must fit into
// the grace period.
func TestScheduleTimes(t *testing.T) {
	const s, never = time.Second, -1
	for text, want := range map[string]struct {
		wait, last, kill time.Duration
		endless          bool
	}{
		"":                                {0, 0, never, false},
		"TERM":                            {0, 0, never, false},
		"TERM/30s":                        {0, 0, never, false},
		"TERM/30s/KILL":                   {0, 30 * s, 30 * s, false},
		"stop/30s/KILL/30s":               {0, 30 * s, 30 * s, false},
		"USR1/30s/TERM/5s/KILL":           {0, 35 * s, 35 * s, false},
		"USR1/30s/TERM":                   {0, 30 * s, never, false},
		"TERM/5s/KILL/5s/QUIT":            {0, 10 * s, 5 * s, false},
		"TERM/1s/KILL/1s/KILL":            {0, 2 * s, s, false},
		"KILL":                            {0, 0, 0, false},
		"5s/TERM":                         {5 * s, 0, never, false},
		"5s/1s/TERM/2s/KILL":              {6 * s, 2 * s, 2 * s, false},
		"5s/stop":                         {5 * s, 0, never, false},
		"TERM/0s/KILL":                    {0, 0, 0, false},
		"TERM/10s/forever/KILL/1s":        {0, 0, never, false},
		"TERM/10s/QUIT/forever/TERM/1s":   {0, 10 * s, never, false},
		"forever/TERM/5s":                 {0, 0, never, false},
		"TERM/forever":                    {0, 0, never, true},
		"TERM/forever/KILL":               {0, 0, never, true},
		"TERM/forever/KILL/0s":            {0, 0, never, true},
		"TERM/5s/forever/KILL":            {0, 0, never, true},
		"TERM/forever/5s/forever/KILL":    {0, 0, never, true},
		"TERM/forever/5s/forever/KILL/1s": {0, 0, never, false},
	} {
		list := testSchedule(t, text)
		kill, found := list.TimeToKill()
		if !found {
			kill = never
		}
		if got := list.InitialWait(); got != want.wait {
			t.Errorf("%s: initial wait %v, want %v", text, got, want.wait)
		}
		if got := list.TimeToLast(); got != want.last || kill != want.kill {
			t.Errorf("%s: %v to the last, %v to KILL; want %v, %v", text, got, kill, want.last, want.kill)
		}
		if got := list.LoopsWithoutWait(); got != want.endless {
			t.Errorf("%s: endless: %v", text, got)
		}
	}
}

// TestSteps: the steps come from the first of: the schedule, the rewrite of the
// trigger, the preset, the trigger.
func TestSteps(t *testing.T) {
	for _, c := range []struct{ schedule, preset, trigger, to, want string }{
		{"", "", "TERM", "TERM", "TERM"},
		{"", "", "TERM", "USR1", "USR1"},
		{"", "", "QUIT", "QUIT", "QUIT"},
		{"", "QUIT", "TERM", "TERM", "QUIT"},
		{"", "QUIT", "QUIT", "QUIT", "QUIT"},
		{"", "QUIT", "TERM", "USR1", "USR1"},
		{"", "TERM/2s/INT", "TERM", "TERM", "TERM/2s/INT"},
		{"", "TERM/2s/INT", "INT", "INT", "TERM/2s/INT"},
		{"", "TERM/2s/INT", "TERM", "USR1", "USR1/2s/INT"},
		{"", "TERM/2s/INT", "TERM", "INT", "INT/2s"}, // INT only once
		{"", "TERM/2s/INT", "HUP", "TERM", "TERM/2s/INT"},
		{"", "USR2/2s/INT", "TERM", "INT", "INT/2s"},
		{"USR1/5s/KILL", "QUIT", "TERM", "TERM", "USR1/5s/KILL"},
		{"USR1/5s/KILL", "QUIT", "TERM", "HUP", "USR1/5s/KILL"},
		{"stop/5s/KILL", "", "TERM", "TERM", "TERM/5s/KILL"},
		{"stop/5s/KILL", "", "QUIT", "QUIT", "QUIT/5s/KILL"},
		{"stop/5s/KILL", "", "TERM", "USR1", "USR1/5s/KILL"},
		{"stop/5s/KILL", "QUIT", "TERM", "TERM", "QUIT/5s/KILL"},
		{"stop/5s/stop", "", "TERM", "TERM", "TERM/5s/TERM"}, // twice by request
	} {
		cfg := Config{Schedule: testSchedule(t, c.schedule), Preset: Preset{Steps: testSchedule(t, c.preset)}}
		s, _ := sig.Parse(c.trigger)
		if to, _ := sig.Parse(c.to); to != s {
			cfg.Rewrites.Add(sig.Rewrite{From: s, To: to})
		}
		if got := cfg.ScheduleFor(s).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestStepsRewrittenToItself: TERM:TERM is a rewrite like any other, which wins over the
// preset's first step.
func TestStepsRewrittenToItself(t *testing.T) {
	for _, c := range []struct{ schedule, preset, trigger, want string }{
		{"", "USR1", "TERM", "TERM"},
		{"", "USR1", "USR1", "USR1"}, // the preset's stop signal is not rewritten
		{"", "TERM/2s/INT", "TERM", "TERM/2s/INT"},
		{"", "USR2/2s/INT", "TERM", "TERM/2s/INT"},
		{"stop/5s/KILL", "USR1", "TERM", "TERM/5s/KILL"},
		{"QUIT", "USR1", "TERM", "QUIT"},
	} {
		cfg := Config{Schedule: testSchedule(t, c.schedule), Preset: Preset{Steps: testSchedule(t, c.preset)}}
		if err := cfg.Rewrites.Add(sig.Rewrite{From: sig.TERM, To: sig.TERM}); err != nil {
			t.Fatal(err)
		}
		s, _ := sig.Parse(c.trigger)
		if got := cfg.ScheduleFor(s).String(); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestCutOff: a KILL cuts off every signal due at or after the KILL.
func TestCutOff(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		schedule string
		kill     time.Duration
		want     string
	}{
		{"", 8 * s, "none"},
		{"TERM", s, "none"},
		{"TERM/30s", s, "none"},
		{"USR1/10s/TERM", 8 * s, "TERM at 10s"},
		{"USR1/10s/TERM", 10 * s, "TERM at 10s"},
		{"USR1/10s/TERM", 11 * s, "none"},
		{"5s/USR1/10s/TERM", 11 * s, "none"}, // both times count from the first signal
		{"USR1/10s/TERM/5s/QUIT", 12 * s, "QUIT at 15s"},
		{"stop/10s/stop", 8 * s, "the stop signal at 10s"},
		{"TERM/forever/TERM/5s", 8 * s, "none"},
		{"USR1/10s/forever/TERM/5s", 8 * s, "TERM at 10s"},
		{"TERM/forever/USR1/5s/QUIT/5s", 8 * s, "none"},
		{"TERM/forever/USR1/5s/QUIT/5s", 4 * s, "QUIT at 5s"},
	} {
		got := "none"
		if step, at, found := testSchedule(t, c.schedule).CutOffBy(c.kill); found {
			got = fmt.Sprintf("%v at %v", step, at)
		}
		if got != c.want {
			t.Errorf("%s, KILL after %v: cuts off %s, want %s", c.schedule, c.kill, got, c.want)
		}
	}
}
