package rollout

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestPause: random gaps have the planned mean. Even gaps are not random, and only the gaps
// of sparse traffic are compressed.
func TestPause(t *testing.T) {
	const rate, draws = 40, 100_000
	r := rand.New(rand.NewPCG(1, 2))
	even := clients{}
	if got := even.pause(r, rate, 0.5); got != 25*time.Millisecond {
		t.Errorf("even gaps of %v, want 25ms", got)
	}
	for name, c := range map[string]struct {
		clients clients
		scale   scale
		mean    time.Duration
	}{
		"dense":      {clients{rate: 5, gap: exponential}, 0.5, 5 * time.Millisecond},
		"thin":       {clients{rate: 0.05, gap: exponential}, 1, 500 * time.Millisecond},
		"bursty":     {clients{rate: 0.05, gap: visits}, 1, 500 * time.Millisecond},
		"compressed": {clients{rate: 0.05, gap: visits}, 0.5, 250 * time.Millisecond},
	} {
		var sum time.Duration
		for range draws {
			sum += c.clients.pause(r, rate, c.scale)
		}
		if mean := sum / draws; mean < c.mean*97/100 || mean > c.mean*103/100 {
			t.Errorf("%s: the mean gap is %v, want %v", name, mean, c.mean)
		}
	}
}
