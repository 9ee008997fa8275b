package rollout

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// lag is a distribution of the time from the stop signal to the removal from the balancer: a row
// of lags.txt.
type lag struct {
	name             string
	from, to, seldom time.Duration
}

// longestLag bounds the distributions of all rollouts.
const longestLag = 10 * time.Second

// lags returns the distributions of a scene. A rollout meets each once.
func (s scene) lags() (all []lag) {
	for _, cells := range rows("lags.txt") {
		if slices.Contains(strings.Fields(cells[4]), string(s)) {
			all = append(all, lag{cells[0], duration(cells[1]), duration(cells[2]), duration(cells[3])})
		}
	}
	return all
}

func (l lag) draw(r *rand.Rand) time.Duration {
	between := func(from, to time.Duration) time.Duration {
		return from + time.Duration(r.Float64()*float64(to-from))
	}
	if l.seldom == 0 {
		return between(l.from, l.to)
	}
	day := r.IntN(3)
	usual, seldom := between(l.from, l.to), between(l.seldom, l.seldom*3/2)
	if day == 0 {
		return seldom
	}
	return usual
}

// drawn is a lag drawn from a distribution.
type drawn struct {
	Name string        `json:"lag"`
	Lag  time.Duration `json:"lag_ns"`
	most time.Duration // until a balancer with stragglers has moved most clients
}

// drawLags returns a rollout's lags, in a drawn order. The lags depend on the seed, the
// repetition and the server alone, so that every contender meets the same lags.
func drawLags(lags []lag, seed uint64, repetition, server int, s scale) []drawn {
	r := rand.New(rand.NewPCG(seed, uint64(repetition)<<16|uint64(server)))
	all := make([]drawn, len(lags))
	for i, l := range lags {
		all[i] = drawn{Name: l.name, Lag: s.of(l.draw(r))}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].most = time.Duration((0.1 + 0.4*r.Float64()) * float64(all[i].Lag))
	}
	return all
}
