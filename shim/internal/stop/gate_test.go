package stop

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// adaptive is --until=quiet --delay=2s --max-delay=8s.
var adaptive = Gate{Floor: 2 * time.Second, UnseenFloor: 8 * time.Second, Ceiling: 8 * time.Second, Until: Quiet}

// TestGate has the length and end of a hold for every traffic state, the same in all
// samples.
func TestGate(t *testing.T) {
	byDefault := Gate{UnseenFloor: 5 * time.Second, Ceiling: 8 * time.Second, Until: Quiet}
	withFloor := Gate{Floor: 2 * time.Second, UnseenFloor: 2 * time.Second, Ceiling: 8 * time.Second, Until: Settled}
	short := Gate{UnseenFloor: 5 * time.Second, Ceiling: 3 * time.Second, Until: Quiet}
	drained := Gate{UnseenFloor: 5 * time.Second, Ceiling: 8 * time.Second, Until: Drained}
	for _, c := range []struct {
		gate Gate
		want map[TrafficState]string
	}{
		{adaptive, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "2s quiet", NoListeners: "2s no_listener", Hung: "2s no_progress", UDPOnly: "8s udp", Unobservable: "8s blind", ServerGone: "0s no_listener", Unseen: "8s elapsed"}},
		{byDefault, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "0s quiet", NoListeners: "0s no_listener", Hung: "0s no_progress", UDPOnly: "5s udp", Unobservable: "8s blind", ServerGone: "0s no_listener", Unseen: "5s elapsed"}},
		{withFloor, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "2s settled", NoListeners: "2s no_listener", Hung: "2s no_progress", UDPOnly: "2s udp", Unobservable: "8s blind", ServerGone: "0s no_listener", Unseen: "2s elapsed"}},
		{short, map[TrafficState]string{Busy: "3s ceiling", ConditionMet: "0s quiet", NoListeners: "0s no_listener", Hung: "0s no_progress", UDPOnly: "3s udp", Unobservable: "3s blind", ServerGone: "0s no_listener", Unseen: "3s elapsed"}},
		{drained, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "0s drained", NoListeners: "0s no_listener", Hung: "8s ceiling", UDPOnly: "5s udp", Unobservable: "8s blind", ServerGone: "0s no_listener", Unseen: "5s elapsed"}},
		{Gate{Floor: 2 * time.Second}, map[TrafficState]string{Busy: "2s elapsed", ConditionMet: "2s elapsed", NoListeners: "2s elapsed", Hung: "2s elapsed", UDPOnly: "2s elapsed", Unobservable: "2s elapsed", ServerGone: "2s elapsed", Unseen: "2s elapsed"}},
	} {
		for state := Busy; state <= Unseen; state++ {
			got := c.gate.play(func(time.Duration) TrafficState { return state })
			if got != c.want[state] {
				t.Errorf("%+v, always %v: %s, want %s", c.gate, state, got, c.want[state])
			}
		}
	}
}

// play holds with four samples a second, and returns the length and end of the hold.
func (g Gate) play(sample func(held time.Duration) TrafficState) string {
	m := New(Config{StopSignals: sig.SetOf(sig.TERM), Gate: g, Grace: 30 * time.Second})
	m.Handle(epoch, Event{Kind: CommandStarted})
	m.Handle(epoch, Event{Kind: SignalArrived, Signal: sig.TERM})
	for held := time.Duration(0); m.State() == Holding; held += 250 * time.Millisecond {
		now := epoch.Add(held)
		if at, _ := m.Deadline(); !at.After(now) {
			m.Handle(now, Event{Kind: Tick})
		} else {
			m.Handle(now, Event{Kind: Sampled, Traffic: sample(held)})
		}
	}
	r := m.Record()
	return fmt.Sprintf("%v %s", r.EndedAt.Sub(r.TriggeredAt), r.Ended)
}

// TestGateCourse: the last sample counts, and the floor is kept.
func TestGateCourse(t *testing.T) {
	for course, want := range map[string]string{ // one sample per second, the last repeated
		"busy busy busy busy met":          "4s quiet",
		"met busy busy busy busy":          "8s ceiling",
		"met met busy met":                 "3s quiet",
		"blind blind blind met":            "3s quiet",
		"met blind blind":                  "8s blind",
		"busy no_listener":                 "2s no_listener",
		"busy busy busy no_progress":       "3s no_progress",
		"no_progress":                      "2s no_progress",
		"no_progress busy met":             "2s quiet",
		"udp busy busy busy":               "8s ceiling",
		"busy busy busy udp":               "8s udp",
		"no_listener no_listener busy met": "3s quiet",
		"busy no_progress met met":         "2s quiet",
		"busy busy unseen":                 "8s elapsed",
		"met met no_listener":              "2s no_listener",
		"busy busy busy no_listener met":   "3s no_listener",
	} {
		words := strings.Fields(course)
		got := adaptive.play(func(held time.Duration) TrafficState {
			return parseTraffic(t, words[min(int(held.Seconds()), len(words)-1)])
		})
		if got != want {
			t.Errorf("%s: %s, want %s", course, got, want)
		}
	}
}

func parseTraffic(t *testing.T, word string) TrafficState {
	for state := Busy; state <= Unseen; state++ {
		if state.String() == word {
			return state
		}
	}
	t.Fatalf("unknown traffic state %q", word)
	return Busy
}

// TestGateMonotone: a later floor, a later ceiling and the loss of the observer never
// shorten a hold.
func TestGateMonotone(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		seconds := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
		g := Gate{Until: []Reason{Settled, Quiet, Drained}[r.IntN(3)], Floor: seconds(5)}
		g.UnseenFloor, g.Ceiling = g.Floor+seconds(6), g.Floor+seconds(6)
		var samples [100]TrafficState
		for i := range samples {
			samples[i] = TrafficState(r.IntN(int(Unseen) + 1))
		}
		index := func(held time.Duration) int { return min(int(held/(250*time.Millisecond)), len(samples)-1) }
		length := func(g Gate, sample func(time.Duration) TrafficState) (d time.Duration) {
			text, _, _ := strings.Cut(g.play(sample), " ")
			d, _ = time.ParseDuration(text)
			return d
		}
		observed := func(held time.Duration) TrafficState { return samples[index(held)] }
		first := length(g, observed)
		laterFloor, laterCeiling := g, g
		laterFloor.Floor += time.Second
		laterFloor.UnseenFloor = max(laterFloor.UnseenFloor, laterFloor.Floor)
		laterFloor.Ceiling = max(laterFloor.Ceiling, laterFloor.Floor)
		laterCeiling.Ceiling += time.Second
		lostAt := r.IntN(40)
		lost := func(held time.Duration) TrafficState {
			if index(held) >= lostAt {
				return Unobservable
			}
			return observed(held)
		}
		for change, got := range map[string]time.Duration{"floor": length(laterFloor, observed), "ceiling": length(laterCeiling, observed), "lost": length(g, lost)} {
			if got < first {
				t.Fatalf("seed %d, %s: %v, want at least %v; %+v %v", seed, change, got, first, g, samples[:index(first)+1])
			}
		}
	}
}
