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
var adaptive = Gate{Floor: 2 * time.Second, Ceiling: 8 * time.Second, Until: Quiet, FloorGiven: true, CeilingGiven: true}

// TestGate has when a hold ends, and why, for every look there is, should all
// looks say the same.
func TestGate(t *testing.T) {
	byDefault := Gate{Floor: 2 * time.Second, Ceiling: 8 * time.Second, Until: Quiet}
	for _, c := range []struct {
		gate Gate
		want map[TrafficState]string
	}{
		{adaptive, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "2s quiet", NoListeners: "2s no_listener", Hung: "0s no_progress", UDPOnly: "8s udp", Unobservable: "8s blind", ServerGone: "0s no_listener"}},
		{byDefault, map[TrafficState]string{Busy: "8s ceiling", ConditionMet: "2s quiet", NoListeners: "0s no_listener", Hung: "0s no_progress", UDPOnly: "2s udp", Unobservable: "8s blind", ServerGone: "0s no_listener"}},
		{Gate{Floor: 2 * time.Second}, map[TrafficState]string{Busy: "2s elapsed", ConditionMet: "2s elapsed", NoListeners: "2s elapsed", Hung: "2s elapsed", UDPOnly: "2s elapsed", Unobservable: "2s elapsed", ServerGone: "2s elapsed"}},
	} {
		for look := Busy; look <= ServerGone; look++ {
			if got := c.gate.play(func(time.Duration) TrafficState { return look }); got != c.want[look] {
				t.Errorf("%v, always %v: %s, want %s", &c.gate, look, got, c.want[look])
			}
		}
	}
}

// play holds with this gate, looking four times a second, and is how long that
// was and why it ended.
func (g Gate) play(look func(held time.Duration) TrafficState) string {
	m := New(Config{StopSignals: sig.SetOf(sig.TERM), Gate: g, Grace: 30 * time.Second})
	m.Handle(epoch, Event{Kind: CommandStarted})
	m.Handle(epoch, Event{Kind: SignalArrived, Signal: sig.TERM})
	for held := time.Duration(0); m.State() == Holding; held += 250 * time.Millisecond {
		now := epoch.Add(held)
		if at, _ := m.Deadline(); !at.After(now) {
			m.Handle(now, Event{Kind: Tick})
		} else {
			m.Handle(now, Event{Kind: Sampled, Traffic: look(held)})
		}
	}
	r := m.Record()
	return fmt.Sprintf("%v %s", r.EndedAt.Sub(r.TriggeredAt), r.Ended)
}

// TestGateCourse: what counts is the last look, and the floor is kept.
func TestGateCourse(t *testing.T) {
	for course, want := range map[string]string{ // a look a second, the last one for ever
		"busy busy busy busy calm":   "4s quiet",
		"calm busy busy busy busy":   "8s ceiling",
		"calm calm busy calm":        "3s quiet",
		"blind blind blind calm":     "3s quiet",
		"calm blind blind":           "8s blind",
		"busy nobody":                "2s no_listener",
		"busy busy busy hung":        "3s no_progress",
		"datagrams busy busy busy":   "8s ceiling",
		"busy busy busy datagrams":   "8s udp",
		"nobody nobody busy calm":    "3s quiet",
		"busy hung calm calm":        "1s no_progress",
		"calm calm nobody":           "2s no_listener",
		"busy busy busy nobody calm": "3s no_listener",
	} {
		looks := strings.Fields(course)
		got := adaptive.play(func(held time.Duration) TrafficState {
			return parseLook(t, looks[min(int(held.Seconds()), len(looks)-1)])
		})
		if got != want {
			t.Errorf("%s: %s, want %s", course, got, want)
		}
	}
}

func parseLook(t *testing.T, word string) TrafficState {
	for l := Busy; l <= Unobservable; l++ {
		if l.String() == word {
			return l
		}
	}
	t.Fatalf("no look is called %q", word)
	return Busy
}

// TestGateMonotone: a later ceiling or a later floor never ends a hold earlier, and
// neither does an observer that is lost.
func TestGateMonotone(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 2))
		seconds := func(n int) time.Duration { return time.Duration(r.IntN(n)) * time.Second }
		g := Gate{Until: Quiet, Floor: seconds(5), FloorGiven: r.IntN(2) == 0, CeilingGiven: r.IntN(2) == 0}
		g.Ceiling = g.Floor + seconds(6)
		var looks [100]TrafficState
		for i := range looks {
			looks[i] = TrafficState(r.IntN(int(Unobservable) + 1))
		}
		at := func(held time.Duration) int { return min(int(held/(250*time.Millisecond)), len(looks)-1) }
		length := func(g Gate, look func(time.Duration) TrafficState) (d time.Duration) {
			text, _, _ := strings.Cut(g.play(look), " ")
			d, _ = time.ParseDuration(text)
			return d
		}
		seen := func(held time.Duration) TrafficState { return looks[at(held)] }
		first := length(g, seen)
		later, longer := g, g
		later.Floor += time.Second
		later.Ceiling = max(later.Ceiling, later.Floor)
		longer.Ceiling += time.Second
		lost := r.IntN(40)
		blind := func(held time.Duration) TrafficState {
			if at(held) >= lost {
				return Unobservable
			}
			return seen(held)
		}
		for what, got := range map[string]time.Duration{"floor": length(later, seen), "ceiling": length(longer, seen), "lost": length(g, blind)} {
			if got < first {
				t.Fatalf("seed %d, %s: %v instead of %v; %+v %v", seed, what, got, first, g, looks[:at(first)+1])
			}
		}
	}
}
