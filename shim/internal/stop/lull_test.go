package stop

import (
	"fmt"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

const ms = time.Millisecond

// TestLullStart: when a search may begin in a hold that no condition ends.
func TestLullStart(t *testing.T) {
	for name, c := range map[string]struct {
		gate Gate
		want time.Duration
	}{
		"a plain delay":             {Gate{Floor: 5 * time.Second, Ceiling: 20 * time.Second}, 5 * time.Second},
		"a second":                  {Gate{Until: Quiet, Ceiling: 20 * time.Second}, 19 * time.Second},
		"a fifth":                   {Gate{Until: Quiet, Ceiling: time.Second}, 800 * ms},
		"not before the floor":      {Gate{Until: Quiet, Floor: 5 * time.Second, Ceiling: 5500 * ms}, 5 * time.Second},
		"others, and --on-stop":     {Gate{WaitGone: true, OnStop: true, Ceiling: 10 * time.Second}, 9 * time.Second},
		"the floor and the ceiling": {Gate{Until: Drained, Floor: 5 * time.Second, Ceiling: 5 * time.Second}, 5 * time.Second},
	} {
		if got := c.gate.LullStart(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// lullStep is an event of a hold, so long after the trigger.
type lullStep struct {
	at    time.Duration
	event Event
}

// look returns a sample with requests at risk.
func look(state TrafficState, atRisk int) Event {
	return Event{Kind: Sampled, Traffic: state, Requests: Requests{Active: true, AtRisk: atRisk}}
}

// silent returns a sample without requests.
func silent(state TrafficState) Event { return Event{Kind: Sampled, Traffic: state} }

// unsure returns a sample that is too old, or incomplete.
func unsure(state TrafficState) Event {
	e := look(state, 0)
	e.Stale = true
	return e
}

// waiting returns e with a --wait-gone path.
func waiting(e Event) Event {
	e.Waiting = true
	return e
}

var (
	tick     = Event{Kind: Tick}
	termHit  = Event{Kind: SignalArrived, Signal: sig.TERM}
	intHit   = Event{Kind: SignalArrived, Signal: sig.INT}
	exited   = Event{Kind: CommandExited}
	delay    = Gate{Floor: 2 * time.Second, Ceiling: 10 * time.Second}
	tight    = Gate{Floor: 2 * time.Second, Ceiling: 2 * time.Second}
	calmGate = Gate{Until: Quiet, Floor: 2 * time.Second, Ceiling: 10 * time.Second}
	settling = Gate{Until: Settled, Ceiling: 10 * time.Second}
	draining = Gate{Until: Drained, Ceiling: 10 * time.Second}
	calmToo  = Gate{Until: Quiet, WaitGone: true, Ceiling: 10 * time.Second}
	others   = Gate{WaitGone: true, Floor: 2 * time.Second, Ceiling: 10 * time.Second}
)

// TestLull: when a hold ends, why, and how the search for a lull went.
func TestLull(t *testing.T) {
	const second = time.Second
	for name, c := range map[string]struct {
		gate  Gate
		steps []lullStep
		want  string
	}{
		"delay, no requests":                {delay, []lullStep{{second, silent(Busy)}, {2 * second, tick}}, "2s elapsed"},
		"delay, no sample":                  {delay, []lullStep{{2 * second, tick}}, "2s elapsed"},
		"delay, a lull":                     {delay, []lullStep{{second, look(Busy, 2)}, {2 * second, tick}, {2010 * ms, look(Busy, 1)}, {2020 * ms, look(Busy, 0)}}, "2.02s elapsed, found, 0"},
		"delay, a lull at once":             {delay, []lullStep{{2 * second, look(Busy, 0)}}, "2s elapsed, found, 0"},
		"delay, an old sample of a lull":    {delay, []lullStep{{second, look(Busy, 0)}, {2 * second, tick}, {2200 * ms, look(Busy, 3)}, {2500 * ms, tick}}, "2.5s elapsed, sought, 3"},
		"delay, unsure":                     {delay, []lullStep{{2 * second, look(Busy, 2)}, {2010 * ms, unsure(Busy)}, {2020 * ms, look(Busy, 4)}, {2500 * ms, tick}}, "2.5s elapsed, sought, 4"},
		"delay, the last request has ended": {delay, []lullStep{{2 * second, look(Busy, 2)}, {2010 * ms, silent(Busy)}}, "2.01s elapsed, found, 0"},
		"delay, no time":                    {tight, []lullStep{{second, look(Busy, 2)}, {2 * second, tick}}, "2s elapsed"},
		"delay, TERM":                       {delay, []lullStep{{2 * second, look(Busy, 2)}, {2100 * ms, termHit}}, "2.1s second_signal"},
		"delay, INT":                        {delay, []lullStep{{2 * second, look(Busy, 2)}, {2100 * ms, intHit}}, "2.1s interrupt"},
		"delay, exit":                       {delay, []lullStep{{2 * second, look(Busy, 2)}, {2100 * ms, exited}}, "2.1s child_exit"},
		"quiet":                             {calmGate, []lullStep{{4 * second, silent(ConditionMet)}}, "4s quiet"},
		"quiet, kept, a lull":               {calmGate, []lullStep{{4 * second, look(OnlyKept, 2)}, {4010 * ms, look(OnlyKept, 0)}}, "4.01s kept, found, 0"},
		"quiet, kept, no lull":              {calmGate, []lullStep{{4 * second, look(OnlyKept, 2)}, {4100 * ms, look(OnlyKept, 2)}, {5 * second, tick}}, "5s kept, sought, 2"},
		"quiet, kept before the floor":      {calmGate, []lullStep{{second, look(OnlyKept, 0)}, {2 * second, look(OnlyKept, 0)}}, "2s kept, found, 0"},
		"quiet, kept no longer":             {calmGate, []lullStep{{4 * second, look(OnlyKept, 2)}, {4100 * ms, look(Busy, 0)}, {5 * second, tick}, {6 * second, silent(ConditionMet)}}, "6s quiet"},
		"quiet, kept again":                 {calmGate, []lullStep{{4 * second, look(OnlyKept, 2)}, {4100 * ms, look(Busy, 2)}, {5 * second, look(OnlyKept, 2)}, {5500 * ms, look(OnlyKept, 1)}, {6 * second, tick}}, "6s kept, sought, 1"},
		"quiet, kept, then hung":            {calmGate, []lullStep{{4 * second, look(OnlyKept, 2)}, {4100 * ms, look(Hung, 2)}}, "4.1s no_progress"},
		"quiet, the ceiling, a lull":        {calmGate, []lullStep{{8900 * ms, look(Busy, 0)}, {9 * second, look(Busy, 2)}, {9100 * ms, look(Busy, 0)}}, "9.1s ceiling, found, 0"},
		"quiet, the ceiling, no lull":       {calmGate, []lullStep{{9 * second, look(Busy, 2)}, {9100 * ms, look(Busy, 2)}, {10 * second, tick}}, "10s ceiling, sought, 2"},
		"quiet, the ceiling, no sample":     {calmGate, []lullStep{{8 * second, look(Busy, 2)}, {10 * second, tick}}, "10s ceiling"},
		"quiet, frozen over the ceiling":    {calmGate, []lullStep{{8 * second, look(Busy, 2)}, {11 * second, look(Busy, 2)}, {11500 * ms, tick}}, "11.5s ceiling"},
		"quiet, just before the ceiling":    {calmGate, []lullStep{{9 * second, look(Busy, 2)}, {9500 * ms, silent(ConditionMet)}}, "9.5s quiet"},
		"quiet, blind at the ceiling":       {calmGate, []lullStep{{9 * second, silent(Unobservable)}, {10 * second, tick}}, "10s blind"},
		"settled":                           {settling, []lullStep{{4 * second, silent(ConditionMet)}}, "4s settled"},
		"settled, a lull":                   {settling, []lullStep{{4 * second, look(ConditionMet, 2)}, {4100 * ms, look(ConditionMet, 0)}}, "4.1s settled, found, 0"},
		"settled, no lull":                  {settling, []lullStep{{4 * second, look(ConditionMet, 2)}, {4100 * ms, look(ConditionMet, 2)}, {4500 * ms, tick}}, "4.5s settled, sought, 2"},
		"settled no longer":                 {settling, []lullStep{{4 * second, look(ConditionMet, 2)}, {4100 * ms, look(Busy, 0)}, {4500 * ms, tick}, {8 * second, look(ConditionMet, 0)}}, "8s settled, found, 0"},
		"settled, kept":                     {settling, []lullStep{{4 * second, look(OnlyKept, 0)}, {10 * second, tick}}, "10s ceiling"},
		"settled at the ceiling":            {settling, []lullStep{{9800 * ms, look(ConditionMet, 2)}, {10 * second, tick}}, "10s settled, sought, 2"},
		"drained, kept":                     {draining, []lullStep{{4 * second, look(OnlyKept, 0)}, {9 * second, look(OnlyKept, 0)}}, "9s ceiling, found, 0"},
		"others are gone, a lull":           {others, []lullStep{{3 * second, waiting(look(Busy, 2))}, {4 * second, look(Busy, 2)}, {4100 * ms, look(Busy, 0)}}, "4.1s elapsed, found, 0"},
		"others stay":                       {others, []lullStep{{9 * second, waiting(look(Busy, 0))}, {10 * second, tick}}, "10s ceiling"},
		"others are gone just before":       {calmToo, []lullStep{{9 * second, waiting(look(Busy, 0))}, {9500 * ms, look(Busy, 0)}}, "9.5s ceiling, found, 0"},
		"others come back":                  {others, []lullStep{{4 * second, look(Busy, 2)}, {4100 * ms, waiting(look(Busy, 0))}, {4500 * ms, tick}, {6 * second, look(Busy, 0)}}, "6s elapsed, found, 0"},
	} {
		m := New(Config{StopSignals: sig.SetOf(sig.TERM), Gate: c.gate, Grace: 30 * second})
		m.Handle(epoch, Event{Kind: CommandStarted})
		m.Handle(epoch, termHit)
		for i, s := range c.steps {
			if before := m.State(); before != Holding {
				t.Errorf("%s: %v before step %d", name, before, i)
			}
			m.Handle(epoch.Add(s.at), s.event)
		}
		if got := lullWords(m); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// lullWords returns the end of the hold and the search for a lull.
func lullWords(m *Machine) string {
	if m.State() == Holding || m.Searching() {
		return fmt.Sprintf("%v, searching: %v", m.State(), m.Searching())
	}
	r := m.Record()
	text := fmt.Sprintf("%v %s", r.EndedAt.Sub(r.TriggeredAt), r.Ended)
	switch {
	case r.Lull.Found:
		return fmt.Sprintf("%s, found, %d", text, r.Lull.InFlight)
	case r.Lull.Sought:
		return fmt.Sprintf("%s, sought, %d", text, r.Lull.InFlight)
	}
	return text
}

// TestLullHook: a hold without a schedule does not search: the signal is another program's.
func TestLullHook(t *testing.T) {
	m := New(Config{Gate: calmGate, Grace: 30 * time.Second})
	m.Handle(epoch, Event{Kind: PreStop})
	m.Handle(epoch.Add(4*time.Second), look(OnlyKept, 2))
	if got := lullWords(m); got != "4s kept" {
		t.Error(got)
	}
}

// TestLullDeadline: during a search the deadline is the end of the search.
func TestLullDeadline(t *testing.T) {
	for want, c := range map[time.Duration]struct {
		gate Gate
		at   time.Duration
		look Event
	}{
		2500 * ms:        {delay, 2 * time.Second, look(Busy, 2)},
		5 * time.Second:  {calmGate, 4 * time.Second, look(OnlyKept, 2)},
		4500 * ms:        {settling, 4 * time.Second, look(ConditionMet, 2)},
		10 * time.Second: {calmGate, 9 * time.Second, look(Busy, 2)},
	} {
		m := New(Config{StopSignals: sig.SetOf(sig.TERM), Gate: c.gate, Grace: 30 * time.Second})
		m.Handle(epoch, Event{Kind: CommandStarted})
		m.Handle(epoch, termHit)
		m.Handle(epoch.Add(c.at), c.look)
		if got, _ := m.Deadline(); got.Sub(epoch) != want {
			t.Errorf("until %q: %v, want %v", c.gate.Until, got.Sub(epoch), want)
		}
	}
}
