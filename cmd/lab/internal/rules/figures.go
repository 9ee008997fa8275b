package rules

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// outcome is how a rule fared at a stop.
type outcome struct {
	lost   int           // requests
	hold   time.Duration // the length of the hold
	excess time.Duration // from the end of the last request to the end of the hold, at least 0
}

// trial is a stop with the outcomes of all rules, in the order of the rules.
type trial struct {
	scenario
	requests int // since the trigger
	outcomes []outcome
}

// simulate draws stops and tries every rule on each stop.
func simulate(ctx context.Context, seed uint64, stops int, rules []rule) ([]trial, error) {
	trials := make([]trial, stops)
	for i := range trials {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		trials[i] = try(drawStop(seed, i), rules)
	}
	return trials, nil
}

// try tries every rule on a stop.
func try(s *stop, rules []rule) trial {
	t := trial{scenario: s.scenario, requests: len(s.requests)}
	for i := range rules {
		end := rules[i].end(s)
		t.outcomes = append(t.outcomes, outcome{s.lost(end), end, max(0, end-s.last)})
	}
	return t
}

// denseRate is the rate from which traffic is dense, in requests a second.
const denseRate = 10

// part is a part of the stops.
type part struct {
	name string
	has  func(*scenario) bool
}

// parts are the columns of the tables. The first part is the whole.
var parts = []part{
	{everyStop, func(*scenario) bool { return true }},
	{denseTraffic, dense},
	{"thin", func(c *scenario) bool { return !dense(c) }},
	{"stragglers", func(c *scenario) bool { return c.balancer.stragglers }},
	{"no stragglers", func(c *scenario) bool { return !c.balancer.stragglers }},
	{denseStragglers, func(c *scenario) bool { return dense(c) && c.balancer.stragglers }},
	{denseOthers, func(c *scenario) bool { return dense(c) && !c.balancer.stragglers }},
	{"lag 0-1 s", lagBetween(0, 1)},
	{"1-5 s", lagBetween(1, 5)},
	{"5-15 s", lagBetween(5, 15)},
	{"15-30 s", lagBetween(15, 30)},
}

// Parts that are looked up by name.
const (
	everyStop       = "all"
	denseTraffic    = "dense"
	denseStragglers = "dense, stragglers"
	denseOthers     = "dense, none"
)

func dense(c *scenario) bool { return c.rate >= denseRate }

func lagBetween(from, to float64) func(*scenario) bool {
	return func(c *scenario) bool { return c.lag >= seconds(from) && c.lag < seconds(to) }
}

// figures sum up the outcomes of a rule at a part of the stops.
type figures struct {
	stops, losing  int // stops, and stops that lose a request
	requests, lost int
	hold, excess   spread
}

// spread is a median and a 95th percentile.
type spread struct{ median, p95 time.Duration }

// result is the figures of a rule, by the name of the part.
type result struct {
	rule   string
	byPart map[string]*figures
}

// summarize returns the results of the rules, in the order of the rules.
func summarize(trials []trial, rules []rule) []result {
	all := make([]result, len(rules))
	for i, r := range rules {
		all[i] = result{r.name, map[string]*figures{}}
		for _, p := range parts {
			all[i].byPart[p.name] = figuresOf(trials, i, p)
		}
	}
	return all
}

// figuresOf sums up the outcomes of the rule with the given index.
func figuresOf(trials []trial, rule int, p part) *figures {
	f := &figures{}
	var holds, excesses []time.Duration
	for i := range trials {
		t := &trials[i]
		if p.has(&t.scenario) {
			o := t.outcomes[rule]
			f.add(t.requests, o.lost)
			holds = append(holds, o.hold)
			excesses = append(excesses, o.excess)
		}
	}
	f.hold, f.excess = spreadOf(holds), spreadOf(excesses)
	return f
}

// add adds a stop.
func (f *figures) add(requests, lost int) {
	f.stops++
	f.requests += requests
	f.lost += lost
	if lost > 0 {
		f.losing++
	}
}

// losingRate is how many of 1 000 stops lose a request.
func (f *figures) losingRate() float64 { return ratio(1000*f.losing, f.stops) }

// lostRate is how many of 1 000 requests since the trigger are lost.
func (f *figures) lostRate() float64 { return ratio(1000*f.lost, f.requests) }

// lostPerStop is the mean number of requests lost at a stop.
func (f *figures) lostPerStop() float64 { return ratio(f.lost, f.stops) }

func ratio(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

func spreadOf(all []time.Duration) spread {
	if len(all) == 0 {
		return spread{}
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	return spread{all[(len(all)-1)/2], all[(len(all)-1)*95/100]}
}
