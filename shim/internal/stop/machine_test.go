package stop_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/flags"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// readPlan returns the plan of flags, and of the word hook; nil for flags that contradict
// each other.
func readPlan(t *testing.T, words []string) *plan.Plan {
	t.Helper()
	place := plan.Place{
		Hook:        slices.Contains(words, "hook"),
		Uncatchable: func(sig.Signal) string { return "" },
	}
	given := flags.Read(t, words)
	p, _ := plan.New(&given, place)
	return p
}

// newMachine returns a machine with the flags.
func newMachine(t *testing.T, text string) *stop.Machine {
	t.Helper()
	return stop.New(readPlan(t, strings.Fields(text)).Stop)
}

// machineIn returns a machine in the given state, reached by the usual events, and the time of
// the last event.
func machineIn(t *testing.T, state stop.State) (*stop.Machine, time.Time) {
	m := stop.New(readPlan(t, strings.Fields(
		"--delay=2s --rewrite=TERM:USR1 --rewrite=HUP:0 --linger=3s --stop-schedule=USR1/5s/QUIT")).Stop)
	now := epoch
	for _, text := range []string{"TERM", "tick", "exit 0", "childless"}[:state] {
		if text == "tick" {
			now = now.Add(2 * time.Second)
		}
		m.Handle(now, script.ParseEvent(text))
	}
	return m, now
}

// tableEvents are the events of the table, each so long after the last event.
var tableEvents = []string{
	"0s hold", "1s TERM", "0.999s TERM", "0.5s INT", "0s HUP", "0s WINCH", "0s CONT",
	"0s tick", "2s tick", "9s tick", "0s stopped TSTP", "0s stopped TTIN", "0s continued", "0s exit 3", "0s orphan",
	"0s childless", "0s on-stop", "0s refused", "0s sent-below", "0s none-at-work", "0s sample met", "0s sample no_progress",
}

// TestTable: testdata/table.txt has every answer of every state to every event, and doc.go draws
// those that change the state.
func TestTable(t *testing.T) {
	doc, _ := os.ReadFile("doc.go")
	var table strings.Builder
	for state := range stop.Gone + 1 {
		for _, text := range tableEvents {
			m, now := machineIn(t, state)
			step := script.ParseStep(text)
			actions := m.Handle(now.Add(step.At), script.ParseEvent(step.Text))
			moves := m.State() != state
			row := fmt.Sprintf("%-9v -> %-10s %s", state, fmt.Sprint(m.State(), ":"), text)
			if moves || len(actions) > 0 {
				fmt.Fprintf(&table, "%s %q\n", row, actions)
			}
			if moves != strings.Contains(string(doc), "//\t"+row+"\n") {
				t.Errorf("%s: drawn in doc.go: %v", row, !moves)
			}
		}
	}
	const golden = "testdata/table.txt"
	if *update {
		os.WriteFile(golden, []byte(table.String()), 0o644)
	}
	if want, _ := os.ReadFile(golden); table.String() != string(want) {
		t.Errorf("the table differs from %s; got:\n%s", golden, &table)
	}
}

// TestManySignals: of a schedule without an end, the record has the first signals and the last.
func TestManySignals(t *testing.T) {
	m := newMachine(t, "--stop-schedule=forever/USR1/1s")
	last := epoch
	m.Handle(last, script.ParseEvent("TERM"))
	for range 100 {
		last = last.Add(time.Second)
		m.Handle(last, script.ParseEvent("tick"))
	}
	if sent := m.Record().Sent; len(sent) != 50 || sent[48].At != epoch.Add(48*time.Second) || sent[49].At != last {
		t.Errorf("%v", sent)
	}
}

// TestWarnNotHeld: a signal from outside that may stop the container and begins no stop is
// warned of. Other signals and other senders are not.
func TestWarnNotHeld(t *testing.T) {
	for _, cells := range tables.Rows(`
		# flags | sent from | signals | warned of
		--delay=1s           | outside | QUIT USR1 HUP WINCH INT PWR USR2 RTMIN+3 RTMIN+4 | QUIT USR1 WINCH INT PWR RTMIN+3
		--delay=1s --rewrite=USR1:HUP | outside | USR1 QUIT | QUIT
		--delay=1s           | inside  | QUIT INT   |
		--delay=1s           | outside | TERM QUIT  |
		--stop-schedule=TERM | outside | QUIT       | QUIT
		                     | outside | QUIT       |
	`) {
		m := newMachine(t, cells[0])
		var warned []string
		for name := range strings.FieldsSeq(cells[2]) {
			e := script.ParseEvent(name)
			e.Outside = cells[1] == "outside"
			for _, a := range m.Handle(epoch, e) {
				if a.Verb == stop.WarnNotHeld {
					warned = append(warned, a.Signal.String())
				}
			}
		}
		if got := strings.Join(warned, " "); got != cells[3] {
			t.Errorf("%s: warned of %s, want %s", cells, got, cells[3])
		}
	}
}
