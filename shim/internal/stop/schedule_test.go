package stop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// TestSchedule: how a schedule is spelled, or why it is refused; and its times up to any forever,
// which must fit into the grace period: the wait for the first signal, and the time from it to KILL or
// the last signal.
func TestSchedule(t *testing.T) {
	for _, cells := range tables.Rows(`
		TERM                            | TERM                     | 0s 0s
		USR1/30/TERM/5s/KILL            | USR1/30s/TERM/5s/KILL    | 0s 35s KILL
		-USR1/30s/-15                   | USR1/30s/TERM            | 0s 30s
		rtmin+3/0.5/forever/-9          | RTMIN+3/500ms/forever/KILL | 0s 0s without a wait
		-32                             | -32                      | 0s 0s
		30                              | 30s                      | 0s 30s KILL
		15/TERM                         | 15s/TERM                 | 15s 0s
		TERM/1s/KILL/1s/KILL            | TERM/1s/KILL/1s/KILL     | 0s 1s KILL
		5s/1s/TERM/2s/KILL              | 5s/1s/TERM/2s/KILL       | 6s 2s KILL
		TERM/10s/QUIT/forever/KILL/1s   | TERM/10s/QUIT/forever/KILL/1s | 0s 10s
		TERM/forever                    | TERM/forever             | 0s 0s without a wait
		TERM/forever/KILL/0s            | TERM/forever/KILL/0s     | 0s 0s without a wait
		                                | invalid step "": give a signal
		TERM/soon                       | invalid step "soon": give a signal
		TERM/-1s                        | invalid step "-1s"
		8761h/TERM                      | invalid step "8761h"
		5/10                            | the schedule sends no signal: give at least one
		TERM/forever/5s/forever/1       | forever is given twice
		KILL/5s/TERM                    | TERM comes after KILL, which ends the command: put KILL last
	`) {
		list, err := stop.ParseSchedule(cells[0])
		if err != nil {
			if !strings.Contains(err.Error(), cells[1]) || len(cells) > 2 {
				t.Errorf("%s: %v, want %s", cells[0], err, cells[1:])
			}
			continue
		}
		end, kills := list.TimeToEnd(0)
		times := fmt.Sprintf("%v %v", list.InitialWait(), end)
		if kills {
			times += " KILL"
		}
		if list.LoopsWithoutWait() {
			times += " without a wait"
		}
		if len(cells) < 3 || list.String() != cells[1] || times != cells[2] {
			t.Errorf("%s: %v, %s; want %s", cells[0], list, times, cells[1:])
		}
	}
}

// TestSteps: the steps come from the first of: the schedule, the rewrite of the trigger, the
// preset, the trigger. The rewrite of a signal to itself is one like any other.
func TestSteps(t *testing.T) {
	for _, cells := range tables.Rows(`
		# flags                             | trigger | steps
		                                    | TERM    | TERM
		--rewrite=TERM:USR1                 | TERM    | USR1
		--preset=nginx                      | TERM    | QUIT
		--preset=nginx --rewrite=TERM:USR1  | TERM    | USR1
		--preset=postgres                   | INT     | TERM/2s/INT
		--preset=postgres --rewrite=TERM:USR1 | TERM  | USR1/2s/INT
		# INT only once
		--preset=postgres --rewrite=TERM:INT  | TERM  | INT/2s
		--preset=postgres --rewrite=TERM:TERM | TERM  | TERM/2s/INT
		--preset=haproxy --rewrite=TERM:TERM  | TERM  | TERM
		# the preset's stop signal is not rewritten
		--preset=haproxy --rewrite=TERM:TERM  | USR1  | USR1
		--stop-schedule=USR1/5s/KILL --preset=nginx --rewrite=TERM:HUP | TERM | USR1/5s/KILL
		--stop-schedule=5s                    | QUIT  | QUIT/5s/KILL/5s
		--stop-schedule=5s --rewrite=TERM:USR1 | TERM | USR1/5s/KILL/5s
		--stop-schedule=5s --preset=nginx     | TERM  | QUIT/5s/KILL/5s
	`) {
		p := readPlan(t, strings.Fields(cells[0]))
		trigger, _ := sig.Parse(cells[1])
		if got := p.Stop.ScheduleFor(trigger).String(); got != cells[2] {
			t.Errorf("%s: %s", cells, got)
		}
	}
}
