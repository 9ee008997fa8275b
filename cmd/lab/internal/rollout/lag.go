package rollout

import (
	"math/rand/v2"
	"time"
)

// lag is a distribution of the time from the stop signal to the removal from the balancer.
type lag struct {
	name string
	draw func(*rand.Rand) time.Duration
}

// longestLag bounds every distribution.
const longestLag = 10 * time.Second

// A rollout meets each distribution once.
var (
	inCluster   = uniform(200*time.Millisecond, time.Second)
	clusterLags = []lag{
		{"in-cluster", inCluster},
		{"ingress", uniform(time.Second, 3*time.Second)},
		{"slow", uniform(5*time.Second, longestLag)},
		{"spike", spike},
	}
)

// lags returns the distributions of a scene.
func (s scene) lags() []lag {
	switch s {
	case demo:
		return []lag{{"demo", uniform(demoLag, demoLag)}}
	case anatomy:
		return []lag{{"anatomy", uniform(anatomyLag, anatomyLag)}}
	}
	return clusterLags
}

func uniform(from, to time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return from + time.Duration(r.Float64()*float64(to-from)) }
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
