package rules

import (
	"math/rand/v2"
	"sort"
	"time"
)

// Ranges of the drawn numbers.
const (
	minRate, maxRate = 0.1, 500.0 // requests a second
	minLag, maxLag   = 0.1, 30.0  // seconds
)

// leadIn is how long traffic runs before the trigger, in seconds and in mean gaps, so that
// the trigger meets traffic at any point and requests in flight.
const (
	leadIn     = maxServiceTime
	leadInGaps = 20
)

// request is a request that reaches the server.
type request struct{ begin, end time.Duration }

// serviceTime is a kind of service times: how long the server works on a request.
type serviceTime struct {
	name string
	draw func(*rand.Rand) time.Duration
}

// maxServiceTime bounds the heavy-tailed service times.
const maxServiceTime = 10 * time.Second

var allServiceTimes = []serviceTime{
	{"20 ms", func(*rand.Rand) time.Duration { return 20 * time.Millisecond }},
	{"heavy-tailed", heavyTailedTime},
}

// heavyTailedTime draws service times of 10 ms or more. The mean is 30 ms; one of 1 000 is
// longer than a second.
func heavyTailedTime(r *rand.Rand) time.Duration {
	return min(maxServiceTime, seconds(0.01*pareto(r, 1.5)))
}

// scenario is what is drawn of a stop before the requests.
type scenario struct {
	traffic  traffic
	balancer balancer
	service  serviceTime
	rate     float64 // requests a second before the trigger
	lag      time.Duration
}

// drawScenario draws the scenario of a stop. The kinds take turns.
func drawScenario(r *rand.Rand, number int) scenario {
	kind := func(n int) (k int) {
		k, number = number%n, number/n
		return k
	}
	return scenario{
		traffic:  allTraffic[kind(len(allTraffic))],
		balancer: allBalancers[kind(len(allBalancers))],
		service:  allServiceTimes[kind(len(allServiceTimes))],
		rate:     logUniform(r, minRate, maxRate),
		lag:      seconds(logUniform(r, minLag, maxLag)),
	}
}

// stop is a simulated stop, by the requests that reach the server.
type stop struct {
	scenario
	inFlight time.Duration // the end of the last request begun before the trigger, at least 0
	requests []request     // begun at the trigger or later, in order of begin
	last     time.Duration // the end of the last request of all, at least 0
}

// drawStop draws a stop. The seed and the number decide the stop.
func drawStop(seed uint64, number int) *stop {
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	return drawScenario(r, number).play(r)
}

// play draws the requests of a stop.
func (c scenario) play(r *rand.Rand) *stop {
	s := &stop{scenario: c}
	from := -leadIn - seconds(leadInGaps/c.rate)
	arrivals := c.traffic.draw(r, c.rate, from, c.lag)
	lags := drawLags(arrivals, c.balancer.draw(r, c.lag))
	for _, a := range arrivals {
		if a.at < lags[a.client] {
			s.add(request{a.at, a.at + c.service.draw(r)})
		}
	}
	return s
}

// drawLags returns the lag of each client.
func drawLags(arrivals []arrival, draw func() time.Duration) []time.Duration {
	var lags []time.Duration
	for _, a := range arrivals {
		for len(lags) <= a.client {
			lags = append(lags, draw())
		}
	}
	return lags
}

// add adds the next request.
func (s *stop) add(q request) {
	s.last = max(s.last, q.end)
	if q.begin < 0 {
		s.inFlight = s.last
		return
	}
	s.requests = append(s.requests, q)
}

// lost returns the number of requests that come when the hold has ended.
func (s *stop) lost(end time.Duration) int {
	first := sort.Search(len(s.requests), func(i int) bool { return s.requests[i].begin >= end })
	return len(s.requests) - first
}
