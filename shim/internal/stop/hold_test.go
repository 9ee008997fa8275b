package stop_test

import (
	_ "embed"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

//go:embed testdata/holds.txt
var holds string

// TestHold: when a hold ends, why, and how the search for a lull went.
func TestHold(t *testing.T) {
	for _, cells := range tables.Rows(holds) {
		m := newMachine(t, cells[0]+" --grace-period=40s")
		begins := "TERM"
		if strings.HasPrefix(cells[0], "hook") {
			begins = "hold"
		}
		m.Handle(epoch, script.ParseEvent(begins))
		for text := range strings.SplitSeq(cells[1], ";") {
			step := script.ParseStep(text)
			at := epoch.Add(step.At)
			after, frozen := strings.CutPrefix(step.Text, "frozen, ")
			if !frozen {
				tickUntil(t, m, at)
			}
			if m.State() != stop.Holding {
				t.Errorf("%s: over before %s", cells, text)
			}
			m.Handle(at, script.ParseEvent(after))
		}
		tickUntil(t, m, epoch.Add(time.Hour))
		r := m.Record()
		words := []string{r.EndedAt.Sub(r.TriggeredAt).String(), string(r.Ended)}
		got := strings.ReplaceAll(strings.Join(append(words, tables.Differing(stop.Lull{}, r.Lull)...), " "), "=true", "")
		if got != cells[2] {
			t.Errorf("%s: %s", cells, got)
		}
	}
}

// tickUntil has the deadlines pass that come before a time, as long as the hold lasts.
func tickUntil(t *testing.T, m *stop.Machine, end time.Time) {
	for m.State() == stop.Holding {
		at, _ := m.Deadline()
		if !at.Before(end) {
			return
		}
		m.Handle(at, script.ParseEvent("tick"))
	}
}

// TestBeside: a hook that stops the server leaves when those below PID 1 have
// ended, or nobody gets the signal, or a second before the grace period ends. A signal to it ends all.
func TestBeside(t *testing.T) {
	for _, cells := range tables.Rows(`
		# flags besides --until=quiet --grace-period=30 | events | what happens
		                      | 4s sample met | report end
		--preset=nginx        | 4s sample met; 4s sent-below; 29s tick | send QUIT; ; look, report late
		--preset=nginx        | 4s sample met; 4s sent-below; 4.25s tick; 5s none-at-work; 6s tick; 7s tick | send QUIT; ; look; ; ; report late
		--preset=nginx        | 4s sample met; 4s sent-below; 28s none-at-work; 29s tick | send QUIT; ; ; report late
		--stop-schedule=USR1/5s/TERM | 4s sample met; 4s sent-below; 5s none-at-work; 9s tick; 9s sent-below; 10s none-at-work; 12s tick | send USR1; ; ; send TERM; ; ; report late
		--stop-schedule=USR1/5s/TERM | 4s sample met; 4s refused USR1; 9s tick | send USR1; ; send TERM
		--preset=nginx        | 4s sample met; 4s refused QUIT | send QUIT; report end
		--preset=nginx        | 2s TERM       | report end
		--preset=nginx        | 2s INT        | report end
		--preset=nginx        | 4s sample met; 4s sent-below; 6s TERM | send QUIT; ; report late
	`) {
		m := newMachine(t, "hook --until=quiet --grace-period=30s "+cells[0])
		m.Handle(epoch, script.ParseEvent("hold"))
		var got []string
		for text := range strings.SplitSeq(cells[1], ";") {
			step := script.ParseStep(text)
			var actions []string
			for _, a := range m.Handle(epoch.Add(step.At), script.ParseEvent(step.Text)) {
				actions = append(actions, a.String())
			}
			got = append(got, strings.Join(actions, ", "))
		}
		if got := strings.Join(got, "; "); got != cells[2] {
			t.Errorf("%s:\n%s\nwant\n%s", cells[:2], got, cells[2])
		}
	}
}

// TestLooks: those below a command are looked at until the grace period is over, and what is left has time to
// read, however often it is looked at.
func TestLooks(t *testing.T) {
	below := newMachine(t, "--delay=1s --grace-period=10s")
	below.Handle(epoch, script.ParseEvent("TERM"))
	below.Handle(epoch.Add(time.Second), script.ParseEvent("tick"))
	below.Handle(epoch.Add(time.Second), script.ParseEvent("sent-below"))
	last := epoch
	for at, ok := below.Deadline(); ok && last.Before(epoch.Add(time.Minute)); at, ok = below.Deadline() {
		last = at
		below.Handle(at, script.ParseEvent("tick"))
	}
	if last.Before(epoch.Add(10*time.Second)) || last.After(epoch.Add(12*time.Second)) {
		t.Errorf("the last look at those below came after %v", last.Sub(epoch))
	}

	tee := stop.Process{PID: 8, Program: "tee"}
	history := newHistory(false, stop.Process{PID: 7}, tee)
	left := newMachine(t, "--grace-period=10s")
	left.Handle(epoch, script.ParseEvent("TERM"))
	left.Handle(epoch, script.ParseEvent("exit 0"))
	for _, after := range []time.Duration{0, 0, 79 * time.Millisecond, 80 * time.Millisecond} {
		now := epoch.Add(after)
		history.Look(0, []stop.Process{tee})
		orders, _, waits := history.Left(now, epoch.Add(time.Minute))
		left.Handle(now, stop.Event{Kind: stop.NoneAtWork, Waiting: waits})
		at, _ := left.Deadline()
		isOver := after == 80*time.Millisecond
		if waits == isOver || len(orders) == 1 != isOver || (left.State() == stop.Gone) != isOver || at.IsZero() != isOver {
			t.Errorf("after %v: %v, waits: %v, %v until %v", after, orders, waits, left.State(), at)
		}
	}
}
