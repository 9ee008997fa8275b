package stop

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/script"
)

//go:embed testdata/holds.txt
var holds string

//go:embed testdata/gates.txt
var gates string

// TestHold: when a hold ends, why, and how the search for a lull went.
func TestHold(t *testing.T) {
	for _, cells := range script.Rows(holds) {
		name, steps, want := cells[0], cells[2], cells[3]
		g := parseGate(cells[1])
		m := begin(g, strings.HasPrefix(cells[1], "hook "))
		for step := range strings.SplitSeq(steps, ";") {
			if before := m.State(); before != Holding {
				t.Errorf("%s: %v before %s", name, before, step)
			}
			if step != "" {
				at, event, _ := strings.Cut(strings.TrimSpace(step), " ")
				m.Handle(epoch.Add(seconds(at)), parseEvent(t, event))
			}
		}
		got := end(m)
		if steps == "" {
			got = fmt.Sprintf("search from %v", g.LullStart())
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// begin returns a machine whose hold has begun, for a signal or as a preStop hook.
func begin(g Gate, hook bool) *Machine {
	cfg := Config{StopSignals: sig.SetOf(sig.TERM), Gate: g, Grace: 30 * time.Second}
	if hook {
		cfg.StopSignals = 0
	}
	m := New(cfg)
	if hook {
		m.Handle(epoch, Event{Kind: PreStop})
	} else {
		m.Handle(epoch, Event{Kind: CommandStarted})
		m.Handle(epoch, Event{Kind: SignalArrived, Signal: sig.TERM})
	}
	return m
}

// seconds reads a number of seconds.
func seconds(text string) time.Duration {
	d, err := time.ParseDuration(text + "s")
	if err != nil {
		panic(err)
	}
	return d
}

func parseGate(text string) (g Gate) {
	for word := range strings.FieldsSeq(text) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "floor":
			g.Floor = seconds(value)
		case "unseen":
			g.UnseenFloor = seconds(value)
		case "ceiling":
			g.Ceiling = seconds(value)
		case "until":
			g.Until = Reason(value)
		case "wait-gone":
			g.WaitGone = true
		case "on-stop":
			g.OnStop = true
		case "hook":
		default:
			panic(word)
		}
	}
	return g
}

// parseEvent reads TERM, INT, exit, tick, or STATE [AT-RISK [stale] [waiting]].
func parseEvent(t *testing.T, text string) Event {
	words := append(strings.Fields(text), "")
	switch words[0] {
	case "TERM", "INT":
		s, _ := sig.Parse(words[0])
		return Event{Kind: SignalArrived, Signal: s}
	case "exit":
		return Event{Kind: CommandExited}
	case "tick":
		return Event{Kind: Tick}
	}
	e := Event{Kind: Sampled, Traffic: parseTraffic(t, words[0])}
	if atRisk, err := strconv.Atoi(words[1]); err == nil {
		e.Requests = Requests{Active: true, AtRisk: atRisk, Stale: words[2] == "stale"}
		e.Waiting = words[2] == "waiting"
	}
	return e
}

func parseTraffic(t *testing.T, word string) TrafficState {
	for state := Busy; state <= OnlyKept; state++ {
		if state.String() == word {
			return state
		}
	}
	t.Fatalf("unknown traffic state %q", word)
	return Busy
}

// end returns the end of the hold and of the search for a lull.
func end(m *Machine) string {
	r := m.Record()
	text := fmt.Sprintf("%v %s", r.EndedAt.Sub(r.TriggeredAt), r.Ended)
	switch {
	case m.State() == Holding:
		at, _ := m.Deadline()
		return fmt.Sprintf("searching, to %v", at.Sub(epoch))
	case r.Lull.Found:
		return fmt.Sprintf("%s, found, %d", text, r.Lull.InFlight)
	case r.Lull.Sought:
		return fmt.Sprintf("%s, sought, %d", text, r.Lull.InFlight)
	}
	return text
}

// TestGate: the length and the end of holds by their samples.
func TestGate(t *testing.T) {
	for _, cells := range script.Rows(gates) {
		states := strings.Fields(cells[1])
		got := parseGate(cells[0]).play(func(held time.Duration) TrafficState {
			return parseTraffic(t, states[min(int(held.Seconds()), len(states)-1)])
		})
		if got != cells[2] {
			t.Errorf("%s, %s: %s, want %s", cells[0], cells[1], got, cells[2])
		}
	}
}

// play holds with four samples a second, and returns the length and end of the hold.
func (g Gate) play(sample func(held time.Duration) TrafficState) string {
	m := begin(g, false)
	for held := time.Duration(0); m.State() == Holding; held += 250 * time.Millisecond {
		now := epoch.Add(held)
		if at, _ := m.Deadline(); !at.After(now) {
			m.Handle(now, Event{Kind: Tick})
		} else {
			m.Handle(now, Event{Kind: Sampled, Traffic: sample(held)})
		}
	}
	return end(m)
}

// TestWarnNotHeld: a signal from outside that may stop the container and begins no stop is
// warned of, once. Other signals and other senders are not.
func TestWarnNotHeld(t *testing.T) {
	for _, cells := range script.Rows(`
		# configuration | sent by | signals | warned of
		hold           | outside | QUIT USR1 HUP QUIT WINCH INT PWR RTMIN+3 RTMIN+4 | QUIT WINCH INT PWR RTMIN+3
		hold           | inside  | QUIT INT   |
		hold           | outside | TERM QUIT  |
		hold, terminal | outside | WINCH QUIT | QUIT
		schedule       | outside | QUIT       | QUIT
		neither        | outside | QUIT       |
	`) {
		cfg := Config{StopSignals: sig.SetOf(sig.TERM), StdinIsTerminal: cells[0] == "hold, terminal",
			SequenceWithoutHold: cells[0] == "schedule"}
		if strings.HasPrefix(cells[0], "hold") {
			cfg.Gate, cfg.Grace = Gate{Floor: time.Second, Ceiling: time.Second}, time.Minute
		}
		m := New(cfg)
		m.Handle(epoch, Event{Kind: CommandStarted})
		var warned []string
		for name := range strings.FieldsSeq(cells[2]) {
			s, _ := sig.Parse(name)
			for _, a := range m.Handle(epoch, Event{Kind: SignalArrived, Signal: s, Outside: cells[1] == "outside"}) {
				if a.Verb == WarnNotHeld {
					warned = append(warned, a.Signal.String())
				}
			}
		}
		if got := strings.Join(warned, " "); got != cells[3] {
			t.Errorf("%s: warned of %s, want %s", cells, got, cells[3])
		}
	}
}
