package rollout

import (
	"math/rand/v2"
	"time"
)

// lag is how late a balancer removes a replica, counted from the stop signal.
type lag struct {
	name string
	draw func(*rand.Rand) time.Duration
}

// allLags are the named distributions. A rollout meets each of them once.
var allLags = []lag{
	{"in-cluster", inCluster},
	{"ingress", uniform(time.Second, 3*time.Second)},
	{"slow", uniform(5*time.Second, 10*time.Second)},
	{"spike", spike},
}

var inCluster = uniform(200*time.Millisecond, time.Second)

func uniform(from, to time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return from + time.Duration(r.Float64()*float64(to-from)) }
}

func fixed(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

// spike is in-cluster on most days.
func spike(r *rand.Rand) time.Duration {
	day := r.IntN(3)
	short, long := inCluster(r), uniform(6*time.Second, 9*time.Second)(r)
	if day == 0 {
		return long
	}
	return short
}

// drawn is a lag of a certain distribution.
type drawn struct {
	Name string        `json:"lag"`
	Lag  time.Duration `json:"-"`
}

// drawLags is the rollout's lags, in a drawn order. They depend on the seed, the
// repetition and the server alone, so that every contender meets the same.
func drawLags(lags []lag, seed uint64, repetition, server int, s scale) []drawn {
	r := rand.New(rand.NewPCG(seed, uint64(repetition)<<16|uint64(server)))
	all := make([]drawn, len(lags))
	for i, l := range lags {
		all[i] = drawn{l.name, s.of(l.draw(r))}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
