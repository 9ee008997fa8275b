// Rules simulates 10 000 stops and prints the table of docs/how-long.md: what rules for the
// end of a hold lose. Everything about a stop is drawn, independently:
//
//   - Traffic of 0.1 to 500 requests a second, log-uniform: steady, a Poisson process, or with
//     heavy-tailed gaps, in turn. Requests take 20 ms, or heavy-tailed times, in turn.
//   - A balancer that lets go 0.1 to 30 s after the signal, log-uniform, in one of three
//     ways in turn; see balancer.
//
// Time is in seconds from the signal. Silence counts from the signal at the earliest, a
// request in flight is no silence, and samples are exact. A request is lost if it comes when
// the hold has ended; the server finishes those in flight, and no hold meets a ceiling.
package main

import (
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

var none = math.Inf(-1) // the silence of a rule that waits for none

type request struct{ begin, end float64 }

// draw draws the requests that come to a server before and during its stop.
func draw(number int) (list []request) {
	r := rand.New(rand.NewPCG(1, uint64(number)))
	rate, lag := logUniform(r, 0.1, 500), logUniform(r, 0.1, 30)
	gap := []func() float64{
		func() float64 { return 1 },
		r.ExpFloat64,
		func() float64 { return pareto(r) / 3 },
	}[number%3]
	lagOfRequest := balancer(r, number/3%3, lag)
	for at := -10 - gap()/rate; at < lag; at += gap() / rate {
		took := 0.02
		if number/9%2 == 1 {
			took = min(10, 0.01*pareto(r))
		}
		if at < lagOfRequest() { // or it goes to another server
			list = append(list, request{at, at + took})
		}
	}
	return list
}

// balancer returns a function that draws when the balancer lets go of the server for a request:
// at once; one by one, when two to ten nodes let go, the last after the whole lag; or with
// stragglers, when 1 to 5 % stay to its end, and the others for a tenth to half of it.
func balancer(r *rand.Rand, way int, lag float64) func() float64 {
	switch way {
	case 1:
		nodes := []float64{lag}
		for range 1 + r.IntN(9) {
			nodes = append(nodes, uniform(r, 0, lag))
		}
		return func() float64 { return nodes[r.IntN(len(nodes))] }
	case 2:
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

// end returns the end of the hold, and the number of requests that come later.
func (r rule) end(list []request) (due float64, late int) {
	due = max(r.floor, r.silence)
	for i, q := range list {
		if q.begin >= due {
			return due, len(list) - i
		}
		due = max(due, q.end+r.silence)
	}
	return due, 0
}

// pareto draws from a Pareto distribution with a minimum of 1.
func pareto(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/1.5) }

func uniform(r *rand.Rand, from, to float64) float64    { return from + r.Float64()*(to-from) }
func logUniform(r *rand.Rand, from, to float64) float64 { return from * math.Pow(to/from, r.Float64()) }

func main() {
	var all [][]request
	var requests float64 // from the signal on
	for number := range stops {
		list := draw(number)
		_, late := rule{silence: none}.end(list)
		all, requests = append(all, list), requests+float64(late)
	}
	fmt.Println("| rule | stops that lose a request, of 1 000 | requests lost, of 1 000 | hold: median | 95 % |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: |")
	for _, r := range []rule{
		{"sleep 5 s", 5, none}, {"sleep 10 s", 10, none}, {"silence 1 s", 0, 1}, {"silence 3 s", 0, 3},
		{"silence 4 s", 0, 4}, {"floor 5 s + silence 3 s", 5, 3},
	} {
		var losing, lost float64
		var holds []float64
		for _, list := range all {
			end, late := r.end(list)
			holds = append(holds, end)
			losing += min(float64(late), 1)
			lost += float64(late)
		}
		slices.Sort(holds)
		fmt.Printf("| %s | %.0f | %.1f | %.1f s | %.1f s |\n", r.name,
			1000*losing/stops, 1000*lost/requests, holds[stops/2], holds[stops*95/100])
	}
}
