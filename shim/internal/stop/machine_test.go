package stop

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tableConfig is --delay=2s --rewrite=TERM:USR1 --rewrite=HUP:0 --linger=3s
// --stop-schedule=USR1/5s/QUIT, as a job of a shell.
func tableConfig() Config {
	cfg := Config{StopSignals: sig.SetOf(sig.TERM, sig.USR1), Gate: Gate{Floor: 2 * time.Second}, Grace: 10 * time.Second, Linger: 3 * time.Second, JobControl: true}
	cfg.Rewrites.Add(sig.Rewrite{From: sig.TERM, To: sig.USR1})
	cfg.Rewrites.Add(sig.Rewrite{From: sig.HUP, To: 0})
	cfg.Schedule = Schedule{{Signal: sig.USR1}, {Wait: 5 * time.Second}, {Signal: sig.QUIT}}
	return cfg
}

// machineIn returns a machine in the given state, reached by the usual events, and the
// time of the last event.
func machineIn(state State) (*Machine, time.Time) {
	m, now := New(tableConfig()), epoch
	steps := []func(){
		func() { m.Handle(now, Event{Kind: CommandStarted}) },
		func() { m.Handle(now, Event{Kind: SignalArrived, Signal: sig.TERM}) },
		func() { now = now.Add(2 * time.Second); m.Handle(now, Event{Kind: Tick}) },
		func() { m.Handle(now, Event{Kind: CommandExited}) },
		func() { m.Handle(now, Event{Kind: NoChildren}) },
	}
	for _, step := range steps[:state] {
		step()
	}
	return m, now
}

// tableEvents are the sections of the table: an event, and the time since the last
// event.
var tableEvents = []struct {
	title string
	after time.Duration
	event Event
}{
	{"started", 0, Event{Kind: CommandStarted}},
	{"TERM", dedupWindow, Event{Kind: SignalArrived, Signal: sig.TERM}},
	{"TERM within 1 s", 500 * time.Millisecond, Event{Kind: SignalArrived, Signal: sig.TERM}},
	{"INT", 500 * time.Millisecond, Event{Kind: SignalArrived, Signal: sig.INT}},
	{"HUP, dropped", 0, Event{Kind: SignalArrived, Signal: sig.HUP}},
	{"WINCH", 0, Event{Kind: SignalArrived, Signal: sig.WINCH}},
	{"tick, early", 0, Event{Kind: Tick}},
	{"tick at +2 s", 2 * time.Second, Event{Kind: Tick}},
	{"tick at G-1s", 9 * time.Second, Event{Kind: Tick}},
	{"CONT", 0, Event{Kind: SignalArrived, Signal: sig.CONT}},
	{"stopped TSTP", 0, Event{Kind: CommandStopped, Signal: sig.TSTP}},
	{"stopped TTIN", 0, Event{Kind: CommandStopped, Signal: sig.TTIN}},
	{"continued", 0, Event{Kind: CommandContinued}},
	{"exit 3", 0, Event{Kind: CommandExited, Code: 3}},
	{"orphan", 0, Event{Kind: OrphanReaped}},
	{"childless", 0, Event{Kind: NoChildren}},
	{"asked", 0, Event{Kind: PreStop}},
	{"on-stop ended", 0, Event{Kind: OnStopEnded}},
	{"refused", 0, Event{Kind: Refused}},
	{"sample met", 0, Event{Kind: Sampled, Traffic: ConditionMet}},
	{"sample no_progress", 0, Event{Kind: Sampled, Traffic: Hung}},
}

// table returns the answer of every state to every event.
func table() string {
	var b strings.Builder
	for _, h := range tableEvents {
		fmt.Fprintf(&b, "%s\n", h.title)
		for state := Starting; state <= Gone; state++ {
			m, now := machineIn(state)
			answer := "-"
			if acts := m.Handle(now.Add(h.after), h.event); len(acts) > 0 {
				answer = join(acts)
			}
			fmt.Fprintf(&b, "    %-9v  %-9v  %s\n", state, m.State(), answer)
		}
	}
	return b.String()
}

func join(acts []Action) string {
	var words []string
	for _, a := range acts {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}

// TestTable compares every answer of the machine with the golden file.
func TestTable(t *testing.T) {
	const golden = "testdata/table.txt"
	got := table()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the table differs from %s; got:\n%s", golden, got)
	}
}

// TestManySignals: of a schedule without an end, the record has the first signals and the last.
func TestManySignals(t *testing.T) {
	m := New(Config{StopSignals: sig.SetOf(sig.TERM), SequenceWithoutHold: true,
		Schedule: Schedule{{Forever: true}, {Signal: sig.USR1}, {Wait: time.Second}}})
	m.Handle(epoch, Event{Kind: CommandStarted})
	m.Handle(epoch, Event{Kind: SignalArrived, Signal: sig.TERM})
	last := epoch
	for range 2 * maxSent {
		last = last.Add(time.Second)
		m.Handle(last, Event{Kind: Tick})
	}
	sent := m.Record().Sent
	if len(sent) != maxSent || sent[len(sent)-1].At != last {
		t.Errorf("%d signals, the last at %v", len(sent), sent[len(sent)-1].At)
	}
}

// TestDrawing compares the transitions drawn in doc.go with the machine.
func TestDrawing(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for line := range strings.Lines(string(doc)) {
		if text, ok := strings.CutPrefix(line, "//\t"); ok && strings.Contains(text, "->") {
			drawn = append(drawn, strings.Join(strings.Fields(text), " "))
		}
	}
	if found := transitions(); !slices.Equal(found, drawn) {
		t.Errorf("doc.go draws\n%s\nthe machine has\n%s", strings.Join(drawn, "\n"), strings.Join(found, "\n"))
	}
}

// transitions returns the changes of state in the table.
func transitions() (list []string) {
	for state := Starting; state <= Gone; state++ {
		for _, h := range tableEvents {
			m, now := machineIn(state)
			m.Handle(now.Add(h.after), h.event)
			if m.State() != state {
				list = append(list, fmt.Sprintf("%v -> %v: %s", state, m.State(), h.title))
			}
		}
	}
	return list
}
