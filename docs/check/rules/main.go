// Rules simulates 10 000 stops and prints the table of docs/how-long.md: what rules for the
// end of a hold lose. Everything about a stop is drawn, independently:
//
//   - Traffic of 0.1 to 500 requests a second, log-uniform, of five kinds in turn; see
//     arrivals. Requests take 20 ms, or heavy-tailed times, in turn.
//   - A balancer that lets go 0.1 to 30 s after the signal, log-uniform, in one of three
//     ways in turn; see balancer.
//
// Time is in seconds from the signal. Silence counts from the signal at the earliest, a
// request in flight is no silence, and samples are exact. A request is lost if it comes when
// the hold has ended; the server finishes those in flight, and no hold meets a ceiling.
package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const stops = 10_000

// rule ends a hold after the floor, once the silence has lasted.
type rule struct {
	name           string
	floor, silence float64
}

var (
	none  = math.Inf(-1) // the silence of a rule that waits for none
	rules = []rule{
		{"sleep 5 s", 5, none}, {"sleep 10 s", 10, none}, {"sleep 15 s", 15, none},
		{"silence 1 s", 0, 1}, {"silence 3 s", 0, 3}, {"silence 4 s", 0, 4}, {"silence 5 s", 0, 5},
		{"floor 5 s + silence 3 s", 5, 3},
	}
)

// stop is a stop, by the requests that come to the server.
type stop struct {
	inFlight float64 // the end of the last request that began before the signal, at least 0
	requests []request
}

type request struct{ begin, end float64 }

// draw draws a stop. The number decides the kinds, which take turns.
func draw(number int) *stop {
	r := rand.New(rand.NewPCG(1, uint64(number)))
	kind := func(n int) (k int) {
		k, number = number%n, number/n
		return k
	}
	traffic, way, heavy := kind(5), kind(3), kind(2) == 1
	s, rate := &stop{}, logUniform(r, 0.1, 500)
	lag := logUniform(r, 0.1, 30)
	const longest = 10.0 // request
	all := arrivals(r, traffic, rate, -longest-20/rate, lag)
	lagOfClient := balancer(r, way, lag)
	var lags []float64
	for _, a := range all {
		for len(lags) <= a.client {
			lags = append(lags, lagOfClient())
		}
	}
	for _, a := range all {
		if a.at >= lags[a.client] {
			continue // with another server by now
		}
		took := 0.02
		if heavy {
			took = min(longest, 0.01*pareto(r, 1.5))
		}
		if a.at < 0 {
			s.inFlight = max(s.inFlight, a.at+took)
		} else {
			s.requests = append(s.requests, request{a.at, a.at + took})
		}
	}
	return s
}

// end returns the end of the hold, and the number of requests that come later.
func (r rule) end(s *stop) (due float64, late int) {
	due = max(r.floor, s.inFlight+r.silence)
	for i, q := range s.requests {
		if q.begin >= due {
			return due, len(s.requests) - i
		}
		due = max(due, q.end+r.silence)
	}
	return due, 0
}

// The ways in which a balancer lets go of a server.
const (
	atOnce = iota
	oneByOne
	stragglers
)

// balancer returns a function that draws the lag of a client. One by one, two to ten nodes
// let go, the last after the whole lag, and a client is on a node by chance. With stragglers
// most clients go after a tenth to half of the lag, and 1 to 5 % stay to its end.
func balancer(r *rand.Rand, way int, lag float64) func() float64 {
	switch way {
	case oneByOne:
		nodes := make([]float64, 2+r.IntN(9))
		for i := range nodes {
			nodes[i] = uniform(r, 0, lag)
		}
		nodes[0] = lag
		return func() float64 { return nodes[r.IntN(len(nodes))] }
	case stragglers:
		early, share := lag*uniform(r, 0.1, 0.5), uniform(r, 0.01, 0.05)
		return func() float64 {
			if r.Float64() < share {
				return lag
			}
			return early
		}
	}
	return func() float64 { return lag }
}

// arrival is the begin of a request of a client.
type arrival struct {
	at     float64
	client int
}

// arrivals draws traffic at a mean rate: steady; a Poisson process; heavy-tailed gaps; bursts
// of ten requests by one client, 0.1 s apart; or clients with a period of 1 to 10 s each.
func arrivals(r *rand.Rand, kind int, rate, from, to float64) (all []arrival) {
	// renewal draws gaps given as multiples of the mean gap.
	renewal := func(rate float64, gap func() float64) (all []arrival) {
		for at := from + r.Float64()/rate; at < to; at += gap() / rate {
			all = append(all, arrival{at, len(all)})
		}
		return all
	}
	steady := func() float64 { return 1 }
	switch kind {
	case 0:
		return renewal(rate, steady)
	case 1:
		return renewal(rate, r.ExpFloat64)
	case 2:
		return renewal(rate, func() float64 { return pareto(r, 1.5) / 3 })
	case 3:
		for client, burst := range renewal(rate/10, r.ExpFloat64) {
			for at := burst.at; at < to; at += r.ExpFloat64() / 10 {
				all = append(all, arrival{at, client})
				if r.Float64() < 0.1 {
					break
				}
			}
		}
	case 4:
		for client := 0; rate > 0; client++ { // the last has the period that makes up the rate
			frequency := min(rate, 1/logUniform(r, 1, 10))
			rate -= frequency
			for _, a := range renewal(frequency, steady) {
				all = append(all, arrival{a.at, client})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// pareto draws from a Pareto distribution with a minimum of 1.
func pareto(r *rand.Rand, tail float64) float64 { return math.Pow(1-r.Float64(), -1/tail) }

func uniform(r *rand.Rand, from, to float64) float64    { return from + r.Float64()*(to-from) }
func logUniform(r *rand.Rand, from, to float64) float64 { return from * math.Pow(to/from, r.Float64()) }

func main() {
	var all []*stop
	for number := range stops {
		all = append(all, draw(number))
	}
	fmt.Println("| rule | stops that lose a request, of 1 000 | requests lost, of 1 000 | hold: median | 95 % |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: |")
	for _, r := range rules {
		var losing, lost, requests float64
		var holds []float64
		for _, s := range all {
			end, late := r.end(s)
			holds = append(holds, end)
			losing += min(float64(late), 1)
			lost += float64(late)
			requests += float64(len(s.requests))
		}
		slices.Sort(holds)
		fmt.Printf("| %s | %.0f | %.1f | %.1f s | %.1f s |\n", r.name,
			1000*losing/stops, 1000*lost/requests, holds[stops/2], holds[stops*95/100])
	}
}
