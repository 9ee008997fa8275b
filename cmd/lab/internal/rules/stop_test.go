package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestTraffic: arrivals are in order, between the given times, and as many as the rate
// says. The mean of heavy-tailed gaps is slow to show, hence the tolerance.
func TestTraffic(t *testing.T) {
	const from, to = -10 * time.Second, 100 * time.Second
	for _, kind := range allTraffic {
		for _, rate := range []float64{0.5, 20} {
			sum := 0
			for seed := range uint64(40) {
				all := kind.draw(rand.New(rand.NewPCG(seed, 0)), rate, from, to)
				sum += len(all)
				if !slices.IsSortedFunc(all, func(a, b arrival) int { return int(a.at - b.at) }) {
					t.Errorf("%s: not in order", kind.name)
				}
				if n := len(all); n > 0 && (all[0].at < from || all[n-1].at >= to) {
					t.Errorf("%s: from %v to %v", kind.name, all[0].at, all[n-1].at)
				}
			}
			if mean := float64(sum) / 40 / (to - from).Seconds(); math.Abs(mean/rate-1) > 0.15 {
				t.Errorf("%s: %.2f requests a second, want %g", kind.name, mean, rate)
			}
		}
	}
}

// TestBurstiness: the variance of the number of requests in a second, as a multiple of the
// mean, is 0 for steady traffic, 1 for Poisson's, and more for heavy tails and bursts.
func TestBurstiness(t *testing.T) {
	for _, c := range []struct {
		traffic  traffic
		min, max float64
	}{{allTraffic[0], 0, 0.01}, {allTraffic[1], 0.9, 1.1}, {allTraffic[2], 1.5, 100}, {allTraffic[3], 3, 30}, {allTraffic[4], 0, 0.5}} {
		const length = 2000
		counts := make([]float64, length)
		for _, a := range c.traffic.draw(rand.New(rand.NewPCG(1, 0)), 20, 0, length*time.Second) {
			counts[a.at/time.Second]++
		}
		var sum, squares float64
		for _, n := range counts {
			sum += n
			squares += n * n
		}
		mean := sum / length
		if dispersion := (squares/length - mean*mean) / mean; dispersion < c.min || dispersion > c.max {
			t.Errorf("%s: dispersion %.2f, want %g to %g", c.traffic.name, dispersion, c.min, c.max)
		}
	}
}

// TestClocklike: every client has a period of its own, and thin traffic is one client with
// the rate as its frequency.
func TestClocklike(t *testing.T) {
	last := map[int]time.Duration{}
	gaps := map[int]time.Duration{}
	for _, a := range clocklike(rand.New(rand.NewPCG(1, 0)), 5, 0, time.Minute) {
		at, before := last[a.client]
		gap, known := gaps[a.client]
		last[a.client] = a.at
		if !before {
			continue
		}
		gaps[a.client] = a.at - at
		if known && (a.at-at-gap).Abs() > time.Microsecond {
			t.Errorf("client %d: gaps of %v and %v", a.client, gap, a.at-at)
		}
	}
	if len(gaps) < 5 {
		t.Errorf("%d clients", len(gaps))
	}
	for _, a := range clocklike(rand.New(rand.NewPCG(1, 0)), 0.05, 0, time.Hour) {
		if a.client != 0 {
			t.Fatalf("client %d in thin traffic", a.client)
		}
	}
}

// TestBalancers: no client stays longer than the lag; how many lags clients have, and what
// share has the whole lag.
func TestBalancers(t *testing.T) {
	const lag, clients = 10 * time.Second, 5000
	for _, c := range []struct {
		balancer           balancer
		minLags, maxLags   int
		minShare, maxShare float64
	}{{allBalancers[0], 1, 1, 1, 1}, {allBalancers[1], 2, 10, 0.08, 0.52}, {allBalancers[2], 2, 2, 0.005, 0.06}} {
		for seed := range uint64(50) {
			draw := c.balancer.draw(rand.New(rand.NewPCG(seed, 0)), lag)
			lags := map[time.Duration]int{}
			for range clients {
				lags[draw()]++
			}
			for l := range lags {
				if l < 0 || l > lag {
					t.Errorf("%s: a lag of %v", c.balancer.name, l)
				}
			}
			share := float64(lags[lag]) / clients
			if len(lags) < c.minLags || len(lags) > c.maxLags || share < c.minShare || share > c.maxShare {
				t.Errorf("%s: %d lags, %.3f of the clients have the whole lag", c.balancer.name, len(lags), share)
			}
		}
	}
}

// TestScenarios: all kinds take turns, every combination comes equally often, and rates and
// lags are log-uniform: as many below the geometric mean as above.
func TestScenarios(t *testing.T) {
	const repeat = 200
	combinations := map[string]int{}
	lowRate, shortLag := 0, 0
	total := repeat * len(allTraffic) * len(allBalancers) * len(allServiceTimes)
	for number := range total {
		c := drawScenario(rand.New(rand.NewPCG(1, uint64(number))), number)
		combinations[fmt.Sprint(c.traffic.name, c.balancer.name, c.service.name)]++
		if c.rate < minRate || c.rate > maxRate || c.lag < seconds(minLag) || c.lag > seconds(maxLag) {
			t.Errorf("rate %g, lag %v", c.rate, c.lag)
		}
		if c.rate < math.Sqrt(minRate*maxRate) {
			lowRate++
		}
		if c.lag.Seconds() < math.Sqrt(minLag*maxLag) {
			shortLag++
		}
	}
	for combination, n := range combinations {
		if n != repeat {
			t.Errorf("%s: %d stops, want %d", combination, n, repeat)
		}
	}
	for name, n := range map[string]int{"low rates": lowRate, "short lags": shortLag} {
		if share := float64(n) / float64(total); math.Abs(share-0.5) > 0.03 {
			t.Errorf("%s: %.3f of the stops", name, share)
		}
	}
}

// TestServiceTimes: heavy-tailed times have the mean and the tail of their comment.
func TestServiceTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	const n = 1_000_000
	var sum time.Duration
	long := 0
	for range n {
		d := heavyTailedTime(r)
		if d < 10*ms || d > maxServiceTime {
			t.Fatal(d)
		}
		sum += d
		if d > time.Second {
			long++
		}
	}
	if mean := sum / n; mean < 28*ms || mean > 32*ms || long < n/1100 || long > n/900 {
		t.Errorf("a mean of %v, %d longer than a second", mean, long)
	}
}

// TestDrawStop: the seed and the number decide a stop, requests begin at the trigger or
// later and before the lag's end.
func TestDrawStop(t *testing.T) {
	for number := range 120 {
		s, again := drawStop(1, number), drawStop(1, number)
		other := drawStop(2, number)
		if !slices.Equal(s.requests, again.requests) || s.inFlight != again.inFlight || s.lag != again.lag {
			t.Fatalf("stop %d is another stop the second time", number)
		}
		if s.lag == other.lag || s.rate == other.rate {
			t.Errorf("stop %d is the same with another seed", number)
		}
		for _, q := range s.requests {
			if q.begin < 0 || q.begin >= s.lag || q.end < q.begin+10*ms || q.end > s.last {
				t.Fatalf("stop %d, lag %v, last %v: %+v", number, s.lag, s.last, q)
			}
		}
	}
}
