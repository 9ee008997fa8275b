package traffic

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestIgnoreProbesSparesTraffic: equal requests of a peer at random times are seldom
// mistaken for probes. (One hold in five may end early.)
func TestIgnoreProbesSparesTraffic(t *testing.T) {
	const runs, busy = 200, 25
	for _, rate := range []float64{0.5, 1, 2, 4} {
		early := 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 7))
			var lives []life
			for at := r.ExpFloat64() / rate; at < busy; at += r.ExpFloat64() / rate {
				lives = append(lives, everyProbe(1, at, at+0.5)...)
			}
			last := lives[len(lives)-1].close
			ends := func(rule ProbeRule) bool {
				w := world{lives: lives, events: true, Config: Config{Probes: rule}}
				at, _ := w.until(s(60), quiet)
				return at < last
			}
			if ends(IgnoreProbes) && !ends(CountProbes) {
				early++
			}
		}
		if early > runs/5 {
			t.Errorf("%v requests a second: %d of %d holds end too early", rate, early, runs)
		}
	}
}

// TestProbeBesideManyClients: hundreds of clients that call at random times do not keep a
// probe from being left out.
func TestProbeBesideManyClients(t *testing.T) {
	const clients, busy = 400, 10
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 9))
		lives := everyProbe(2, 0.3, 60)
		for i := range clients {
			for at := r.ExpFloat64(); at < busy; at += r.ExpFloat64() {
				next := everyProbe(1, at, at+0.5)
				next[0].peer = fmt.Sprintf("10.3.%d.%d", i/250, i%250)
				lives = append(lives, next...)
			}
		}
		w := world{lives: lives, events: true}
		if at, _ := w.until(never, quiet); at < s(busy) || at > s(busy+5) {
			t.Errorf("seed %d: quiet after %v, and the last request came before %d s", seed, at, busy)
		}
	}
}
