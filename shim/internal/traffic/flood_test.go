package traffic

import (
	"testing"
	"time"
)

// TestFlood: events at a steady rate are too many above the limit and never below,
// whatever the interval of samples. A burst is not a flood.
func TestFlood(t *testing.T) {
	for _, poll := range []time.Duration{s(0.01), s(0.1), s(0.25), s(1)} {
		for rate, want := range map[float64]bool{0: false, 19_900: false, 20_100: true, 1e6: true} {
			var f Flood
			flood := false
			for now := start; now.Before(start.Add(s(5))); now = now.Add(poll) {
				ended := int(rate * poll.Seconds())
				if now == start {
					ended = 0
				}
				flood = f.Add(now, ended) || flood
			}
			if flood != want {
				t.Errorf("%v events a second, every %v: too many is %v", rate, poll, flood)
			}
		}
	}
	var f Flood
	for now := start; now.Before(start.Add(s(10))); now = now.Add(s(1)) {
		for i := range 100 {
			if f.Add(now.Add(time.Duration(i)*s(0.01)), map[int]int{50: 4000}[i]) {
				t.Fatal("a burst was too many")
			}
		}
	}
}

// TestFloodPause: a flood ends after a second, once, and another flood may follow.
func TestFloodPause(t *testing.T) {
	var f Flood
	f.Add(start, 0)
	for round := range 3 {
		from := start.Add(s(10 * float64(round+1)))
		if f.Ongoing() || f.TryResume(from) {
			t.Fatal("a flood before any events")
		}
		f.Add(from, 0)
		if now := from.Add(s(0.25)); !f.Add(now, 5001) || !f.Ongoing() || f.TryResume(now.Add(s(0.99))) || !f.Ongoing() {
			t.Fatal("the flood did not last")
		}
		if f.TryResume(from.Add(s(1.25))) != true || f.Ongoing() || f.TryResume(from.Add(s(1.26))) {
			t.Fatal("the flood is not over")
		}
	}
}
