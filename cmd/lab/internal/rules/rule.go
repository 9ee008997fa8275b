package rules

import (
	"fmt"
	"time"
)

// rule is a rule for the end of a hold. A rule without quiet ends the hold at the floor.
type rule struct {
	name  string
	floor time.Duration
	quiet func(*observed) time.Duration // how long the silence must last
}

// end returns the end of the hold.
func (r *rule) end(s *stop) time.Duration {
	if r.quiet == nil {
		return r.floor
	}
	o := observed{lastByte: s.inFlight}
	due := r.due(&o)
	for _, q := range s.requests {
		if q.begin >= due {
			break
		}
		o.add(q)
		due = r.due(&o)
	}
	return due
}

// due returns the end of the hold if no further request comes.
func (r *rule) due(o *observed) time.Duration {
	return max(r.floor, o.lastByte+r.quiet(o))
}

// observed is what the hold has observed so far.
type observed struct {
	requests  int
	lastBegin time.Duration
	lastByte  time.Duration // in the future while a request is in flight
	longest   time.Duration // the longest gap between the begins of two requests
	smoothed  time.Duration // the gap and its mean deviation, smoothed as in RFC 6298
	deviation time.Duration
}

// add adds a request. The gap before the first request counts from the trigger.
func (o *observed) add(q request) {
	gap := q.begin - o.lastBegin
	o.longest = max(o.longest, gap)
	if o.requests == 0 {
		o.smoothed, o.deviation = gap, gap/2
	} else {
		o.deviation += ((gap - o.smoothed).Abs() - o.deviation) / 4
		o.smoothed += (gap - o.smoothed) / 8
	}
	o.requests++
	o.lastBegin = q.begin
	o.lastByte = max(o.lastByte, q.end)
}

// sleep is a fixed floor.
func sleep(floor time.Duration) rule {
	return rule{name: fmt.Sprintf("sleep %g s", floor.Seconds()), floor: floor}
}

// silence is a silence without a floor.
func silence(quietFor time.Duration) rule {
	return rule{
		name:  fmt.Sprintf("silence %g s", quietFor.Seconds()),
		quiet: func(*observed) time.Duration { return quietFor },
	}
}

// floorAndSilence is a floor with a silence, which may end before the floor.
func floorAndSilence(floor, quietFor time.Duration) rule {
	r := silence(quietFor)
	r.name = fmt.Sprintf("floor %g s + %s", floor.Seconds(), r.name)
	r.floor = floor
	return r
}

// fixedRules are the rules that are the same for all traffic.
func fixedRules() (all []rule) {
	for _, s := range []float64{1, 2, 3, 5, 8, 10, 15, 20, 30} {
		all = append(all, sleep(seconds(s)))
	}
	for _, s := range []float64{0.5, 1, 1.5, 2, 3, 4, 5, 6, 8} {
		all = append(all, silence(seconds(s)))
	}
	return append(all, floorAndSilence(5*time.Second, 3*time.Second))
}

// adaptiveRules are silences that follow the traffic since the trigger, within bounds.
func adaptiveRules() (all []rule) {
	for _, longest := range []time.Duration{4 * time.Second, 8 * time.Second} {
		for _, a := range adaptations {
			all = append(all, bounded(a, time.Second, longest))
		}
	}
	return all
}

// adaptation is a silence that follows the traffic, without bounds.
type adaptation struct {
	name  string
	quiet func(*observed) time.Duration // called once a request has come
}

var adaptations = []adaptation{
	{"5 x mean gap", func(o *observed) time.Duration { return 5 * o.meanGap() }},
	{"20 x mean gap", func(o *observed) time.Duration { return 20 * o.meanGap() }},
	{"100 x mean gap", func(o *observed) time.Duration { return 100 * o.meanGap() }},
	{"2 x longest gap", func(o *observed) time.Duration { return 2 * o.longest }},
	{"5 x longest gap", func(o *observed) time.Duration { return 5 * o.longest }},
	{"gap + 4 deviations", func(o *observed) time.Duration { return o.smoothed + 4*o.deviation }},
	{"half the lag seen", func(o *observed) time.Duration { return o.lastByte / 2 }},
}

// bounded returns the rule of an adaptation. Without a request since the trigger, the
// silence is the longest.
func bounded(a adaptation, shortest, longest time.Duration) rule {
	return rule{
		name: fmt.Sprintf("%s, %g to %g s", a.name, shortest.Seconds(), longest.Seconds()),
		quiet: func(o *observed) time.Duration {
			if o.requests == 0 {
				return longest
			}
			return min(max(a.quiet(o), shortest), longest)
		},
	}
}

// meanGap is the mean time between two requests since the trigger.
func (o *observed) meanGap() time.Duration { return o.lastBegin / time.Duration(o.requests) }
