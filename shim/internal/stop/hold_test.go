package stop_test

import (
	_ "embed"
	"fmt"
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
		if strings.HasPrefix(cells[0], "hook") {
			m.Handle(epoch, event(t, "hold"))
		} else {
			m.Handle(epoch, event(t, "TERM"))
		}
		for text := range strings.SplitSeq(cells[1], ";") {
			step, err := script.ParseStep(text)
			if err != nil {
				t.Fatal(err)
			}
			at := epoch.Add(step.At)
			after, frozen := strings.CutPrefix(step.Text, "frozen, ")
			if !frozen {
				tickUntil(t, m, at)
			}
			if m.State() != stop.Holding {
				t.Errorf("%s: over before %s", cells, text)
			}
			m.Handle(at, event(t, after))
		}
		tickUntil(t, m, epoch.Add(time.Hour))
		r := m.Record()
		got := fmt.Sprint(r.EndedAt.Sub(r.TriggeredAt), " ", r.Ended)
		switch {
		case r.Lull.Found:
			got += fmt.Sprint(", found, ", r.Lull.InFlight)
		case r.Lull.Sought:
			got += fmt.Sprint(", sought, ", r.Lull.InFlight)
		}
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
		m.Handle(at, event(t, "tick"))
	}
}
