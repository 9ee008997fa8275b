package rules

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// arrival is the begin of a request.
type arrival struct {
	at     time.Duration
	client int // clients are numbered from 0
}

// traffic is a kind of traffic. The function draw returns the arrivals between two times
// at a mean rate per second, in order of time.
type traffic struct {
	name string
	draw func(r *rand.Rand, rate float64, from, to time.Duration) []arrival
}

// allTraffic are the kinds of traffic. Requests of the first three kinds come from a
// client each.
var allTraffic = []traffic{
	{"steady", steady},
	{"Poisson", poisson},
	{"heavy-tailed gaps", heavyTailed},
	{"bursty", bursty},
	{"clocklike clients", clocklike},
}

// steady draws arrivals with equal gaps.
func steady(r *rand.Rand, rate float64, from, to time.Duration) []arrival {
	return renewal(r, rate, from, to, func() float64 { return 1 })
}

// poisson draws arrivals with exponential gaps: many independent clients.
func poisson(r *rand.Rand, rate float64, from, to time.Duration) []arrival {
	return renewal(r, rate, from, to, r.ExpFloat64)
}

// gapTail is the exponent of heavy-tailed gaps: the mean is finite, the variance is not.
const gapTail = 1.5

// heavyTailed draws arrivals whose gaps have a Pareto distribution.
func heavyTailed(r *rand.Rand, rate float64, from, to time.Duration) []arrival {
	return renewal(r, rate, from, to, func() float64 { return pareto(r, gapTail) * (gapTail - 1) / gapTail })
}

// renewal draws arrivals with independent gaps, given as multiples of the mean gap.
func renewal(r *rand.Rand, rate float64, from, to time.Duration, gap func() float64) (all []arrival) {
	for at := from + seconds(r.Float64()/rate); at < to; at += seconds(gap() / rate) {
		all = append(all, arrival{at, len(all)})
	}
	return all
}

// A visit is a burst of requests by one client, like the page and the pictures of a web
// site.
const (
	visitSize = 10                     // mean number of requests, geometric
	visitGap  = 100 * time.Millisecond // mean gap, exponential
)

// bursty draws visits that come as a Poisson process. The bursts of dense traffic overlap;
// thin traffic has long pauses between bursts.
func bursty(r *rand.Rand, rate float64, from, to time.Duration) (all []arrival) {
	for client, visit := range poisson(r, rate/visitSize, from, to) {
		for at := visit.at; at < to; at += seconds(r.ExpFloat64() * visitGap.Seconds()) {
			all = append(all, arrival{at, client})
			if r.Float64() < 1.0/visitSize {
				break
			}
		}
	}
	sortArrivals(all)
	return all
}

// The period of a clocklike client is log-uniform between these times.
const (
	shortestPeriod = time.Second
	longestPeriod  = 10 * time.Second
)

// clocklike draws the requests of clients that each send with a period and a phase of
// their own. The last client has the period that makes up the rate.
func clocklike(r *rand.Rand, rate float64, from, to time.Duration) (all []arrival) {
	for client := 0; rate > 0; client++ {
		frequency := min(rate, 1/logUniform(r, shortestPeriod.Seconds(), longestPeriod.Seconds()))
		rate -= frequency
		for _, a := range steady(r, frequency, from, to) {
			all = append(all, arrival{a.at, client})
		}
	}
	sortArrivals(all)
	return all
}

func sortArrivals(all []arrival) {
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
}

// pareto draws from a Pareto distribution with a minimum of 1.
func pareto(r *rand.Rand, tail float64) float64 { return math.Pow(1-r.Float64(), -1/tail) }

// logUniform draws a number whose logarithm has a uniform distribution.
func logUniform(r *rand.Rand, from, to float64) float64 {
	return from * math.Pow(to/from, r.Float64())
}

func uniform(r *rand.Rand, from, to float64) float64 { return from + r.Float64()*(to-from) }

// seconds converts seconds to a duration. Longer than a year is a year.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600
	return time.Duration(min(s, year) * float64(time.Second))
}
