package rollout

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// longestLag bounds the lags of rollouts.
const longestLag = 10 * time.Second

// drawLags draws a lag, the time from the stop signal to the removal from the balancer, from each
// distribution of a scene in lags.txt, in a drawn order. The lags depend on the repetition and the
// server alone, so that every contender meets the same lags.
func drawLags(in scene, repetition, server int) (all []time.Duration) {
	r := rand.New(rand.NewPCG(uint64(repetition), uint64(server)))
	for _, cells := range rows("lags.txt") {
		if !slices.Contains(strings.Fields(cells[4]), string(in)) {
			continue
		}
		from, to := duration(cells[1]), duration(cells[2])
		if seldom := duration(cells[3]); seldom > 0 && r.IntN(3) == 0 {
			from, to = seldom, seldom*3/2
		}
		all = append(all, from+time.Duration(r.Float64()*float64(to-from)))
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
