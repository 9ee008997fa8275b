package stop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
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

// TestScheduleTimes: the times of a schedule up to any forever, which must fit into the grace
// period: the wait for the first signal, the times to the last signal and to KILL, "-" without.
func TestScheduleTimes(t *testing.T) {
	for _, cells := range script.Rows(`
		                                | 0s 0s -
		TERM                            | 0s 0s -
		TERM/30s                        | 0s 0s -
		TERM/30s/KILL                   | 0s 30s 30s
		stop/30s/KILL/30s               | 0s 30s 30s
		USR1/30s/TERM/5s/KILL           | 0s 35s 35s
		USR1/30s/TERM                   | 0s 30s -
		TERM/5s/KILL/5s/QUIT            | 0s 10s 5s
		TERM/1s/KILL/1s/KILL            | 0s 2s 1s
		KILL                            | 0s 0s 0s
		5s/TERM                         | 5s 0s -
		5s/1s/TERM/2s/KILL              | 6s 2s 2s
		5s/stop                         | 5s 0s -
		TERM/0s/KILL                    | 0s 0s 0s
		TERM/10s/forever/KILL/1s        | 0s 0s -
		TERM/10s/QUIT/forever/TERM/1s   | 0s 10s -
		forever/TERM/5s                 | 0s 0s -
		TERM/forever                    | 0s 0s - without a wait
		TERM/forever/KILL               | 0s 0s - without a wait
		TERM/forever/KILL/0s            | 0s 0s - without a wait
		TERM/5s/forever/KILL            | 0s 0s - without a wait
		TERM/forever/5s/forever/KILL    | 0s 0s - without a wait
		TERM/forever/5s/forever/KILL/1s | 0s 0s -
	`) {
		list := testSchedule(t, cells[0])
		got := fmt.Sprintf("%v %v -", list.InitialWait(), list.TimeToLast())
		if kill, found := list.TimeToKill(); found {
			got = strings.TrimSuffix(got, "-") + kill.String()
		}
		if list.LoopsWithoutWait() {
			got += " without a wait"
		}
		if got != cells[1] {
			t.Errorf("%s: %s, want %s", cells[0], got, cells[1])
		}
	}
}

// TestSteps: the steps come from the first of: the schedule, the rewrite of the trigger, the
// preset, the trigger. The rewrite of a signal to itself is one like any other.
func TestSteps(t *testing.T) {
	for _, cells := range script.Rows(`
		# schedule   | preset      | trigger | rewrites   | steps
		             |             | TERM    |            | TERM
		             |             | TERM    | TERM:USR1  | USR1
		             |             | QUIT    |            | QUIT
		             | QUIT        | TERM    |            | QUIT
		             | QUIT        | QUIT    |            | QUIT
		             | QUIT        | TERM    | TERM:USR1  | USR1
		             | TERM/2s/INT | TERM    |            | TERM/2s/INT
		             | TERM/2s/INT | INT     |            | TERM/2s/INT
		             | TERM/2s/INT | TERM    | TERM:USR1  | USR1/2s/INT
		# INT only once
		             | TERM/2s/INT | TERM    | TERM:INT   | INT/2s
		             | TERM/2s/INT | HUP     | HUP:TERM   | TERM/2s/INT
		             | USR2/2s/INT | TERM    | TERM:INT   | INT/2s
		USR1/5s/KILL | QUIT        | TERM    |            | USR1/5s/KILL
		USR1/5s/KILL | QUIT        | TERM    | TERM:HUP   | USR1/5s/KILL
		stop/5s/KILL |             | TERM    |            | TERM/5s/KILL
		stop/5s/KILL |             | QUIT    |            | QUIT/5s/KILL
		stop/5s/KILL |             | TERM    | TERM:USR1  | USR1/5s/KILL
		stop/5s/KILL | QUIT        | TERM    |            | QUIT/5s/KILL
		# twice by request
		stop/5s/stop |             | TERM    |            | TERM/5s/TERM
		             | USR1        | TERM    | TERM:TERM  | TERM
		# the preset's stop signal is not rewritten
		             | USR1        | USR1    | TERM:TERM  | USR1
		             | TERM/2s/INT | TERM    | TERM:TERM  | TERM/2s/INT
		             | USR2/2s/INT | TERM    | TERM:TERM  | TERM/2s/INT
		stop/5s/KILL | USR1        | TERM    | TERM:TERM  | TERM/5s/KILL
		QUIT         | USR1        | TERM    | TERM:TERM  | QUIT
	`) {
		cfg := Config{Schedule: testSchedule(t, cells[0]), Preset: testSchedule(t, cells[1])}
		if r, err := sig.ParseRewrite(cells[3]); err == nil {
			cfg.Rewrites.Add(r)
		}
		trigger, _ := sig.Parse(cells[2])
		if got := cfg.ScheduleFor(trigger).String(); got != cells[4] {
			t.Errorf("%q: %s", cells, got)
		}
	}
}

// TestCutOff: a KILL cuts off every signal due at or after the KILL.
func TestCutOff(t *testing.T) {
	for _, cells := range script.Rows(`
		                              | 8s  | none
		TERM                          | 1s  | none
		TERM/30s                      | 1s  | none
		USR1/10s/TERM                 | 8s  | TERM at 10s
		USR1/10s/TERM                 | 10s | TERM at 10s
		USR1/10s/TERM                 | 11s | none
		# both times count from the first signal
		5s/USR1/10s/TERM              | 11s | none
		USR1/10s/TERM/5s/QUIT         | 12s | QUIT at 15s
		stop/10s/stop                 | 8s  | the stop signal at 10s
		TERM/forever/TERM/5s          | 8s  | none
		USR1/10s/forever/TERM/5s      | 8s  | TERM at 10s
		TERM/forever/USR1/5s/QUIT/5s  | 8s  | none
		TERM/forever/USR1/5s/QUIT/5s  | 4s  | QUIT at 5s
	`) {
		kill, _ := time.ParseDuration(cells[1])
		got := "none"
		if step, at, found := testSchedule(t, cells[0]).CutOffBy(kill); found {
			got = fmt.Sprintf("%v at %v", step, at)
		}
		if got != cells[2] {
			t.Errorf("%s, KILL after %v: cuts off %s, want %s", cells[0], kill, got, cells[2])
		}
	}
}

func TestParseSchedule(t *testing.T) {
	for text, want := range map[string]string{
		"TERM":                   "TERM",
		"USR1/30/TERM/5s/KILL":   "USR1/30s/TERM/5s/KILL",
		"-USR1/30s/-15":          "USR1/30s/TERM",
		"rtmin+3/0.5/forever/-9": "RTMIN+3/500ms/forever/KILL",
		"TERM/1s/forever/KILL/1": "TERM/1s/forever/KILL/1s",
		"30":                     "30s",
		"15/TERM":                "15s/TERM", // a bare number is a duration
	} {
		got, err := ParseSchedule(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                          `invalid step "": give a signal`,
		"TERM/soon":                 `invalid step "soon": give a signal`,
		"TERM/-1s":                  `invalid step "-1s"`,
		"5/10":                      "the schedule sends no signal: give at least one",
		"TERM/forever/5s/forever/1": "forever is given twice",
		"KILL/5s/TERM":              "TERM comes after KILL, which ends the command: put KILL last",
	} {
		if got, err := ParseSchedule(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want error %q", text, got, err, want)
		}
	}
}
