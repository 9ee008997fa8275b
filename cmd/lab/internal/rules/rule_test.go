package rules

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// newStop returns a stop with the given requests, in order of begin.
func newStop(requests ...request) *stop {
	s := &stop{}
	for _, q := range requests {
		s.add(q)
	}
	return s
}

// steadyStop is a stop with 10 requests a second of 20 ms each, behind a balancer that
// lets go of all clients after 3 s.
func steadyStop(seed uint64) *stop {
	c := scenario{
		traffic: allTraffic[0], balancer: allBalancers[0], service: allServiceTimes[0],
		rate: 10, lag: 3 * time.Second,
	}
	return c.play(rand.New(rand.NewPCG(seed, 0)))
}

// TestSteadyTraffic has outcomes that do not depend on the phase of the requests. The
// excess of a silence is exact; of a floor it depends on the phase, within a gap of 100 ms.
func TestSteadyTraffic(t *testing.T) {
	const gap = 100 * ms
	for name, c := range map[string]struct {
		rule              rule
		lost              int
		excess, tolerance time.Duration
	}{
		"sleep 2":             {sleep(2 * time.Second), 10, 0, 0},
		"sleep 3":             {sleep(3 * time.Second), 0, 0, gap},
		"sleep 5":             {sleep(5 * time.Second), 0, 1980 * ms, gap},
		"silence 0.5":         {silence(500 * ms), 0, 500 * ms, 0},
		"silence 1":           {silence(time.Second), 0, time.Second, 0},
		"floor 5 + silence 1": {floorAndSilence(5*time.Second, time.Second), 0, 1980 * ms, gap},
		"floor 1 + silence 3": {floorAndSilence(time.Second, 3*time.Second), 0, 3 * time.Second, 0},
	} {
		for seed := range uint64(20) {
			s := steadyStop(seed)
			if len(s.requests) != 30 {
				t.Fatalf("seed %d: %d requests since the trigger, want 30", seed, len(s.requests))
			}
			o := try(s, []rule{c.rule}).outcomes[0]
			if o.lost != c.lost || o.excess < c.excess || o.excess > c.excess+c.tolerance {
				t.Errorf("%s, seed %d: %+v, want %d lost, an excess of %v", name, seed, o, c.lost, c.excess)
			}
		}
	}
}

// TestEnd: a request in flight is no silence, silence counts from the trigger at the
// earliest, and a hold that has ended does not begin again.
func TestEnd(t *testing.T) {
	brief := func(at time.Duration) request { return request{at, at + 20*ms} }
	for name, c := range map[string]struct {
		stop   *stop
		rule   rule
		end    time.Duration
		lost   int
		excess time.Duration
	}{
		"no request":                     {newStop(), silence(time.Second), time.Second, 0, time.Second},
		"traffic before the trigger":     {newStop(brief(-40 * ms)), silence(time.Second), time.Second, 0, time.Second},
		"in flight at the trigger":       {newStop(request{-time.Second, 2 * time.Second}), silence(time.Second), 3 * time.Second, 0, time.Second},
		"in flight, others beside":       {newStop(request{0, 9 * time.Second}, brief(time.Second)), silence(time.Second), 10 * time.Second, 0, time.Second},
		"a pause":                        {newStop(brief(500*ms), brief(3*time.Second)), silence(time.Second), 1520 * ms, 1, 0},
		"a pause before the first":       {newStop(brief(2*time.Second), brief(2100*ms)), silence(time.Second), time.Second, 2, 0},
		"a request at the end":           {newStop(brief(time.Second)), silence(time.Second), time.Second, 1, 0},
		"a pause shorter than the floor": {newStop(brief(500*ms), brief(3*time.Second)), floorAndSilence(5*time.Second, time.Second), 5 * time.Second, 0, 1980 * ms},
		"a pause at the floor":           {newStop(brief(500*ms), brief(3*time.Second)), floorAndSilence(2*time.Second, time.Second), 2 * time.Second, 1, 0},
		"a floor cuts nothing":           {newStop(request{900 * ms, 8 * time.Second}), sleep(time.Second), time.Second, 0, 0},
	} {
		s := c.stop
		if end := c.rule.end(s); end != c.end || s.lost(end) != c.lost || max(0, end-s.last) != c.excess {
			t.Errorf("%s: end %v, %d lost, last %v; want %v, %d, an excess of %v", name, end, s.lost(end), s.last, c.end, c.lost, c.excess)
		}
	}
}

// TestLongerSilence: a longer silence never ends a hold earlier, and so never loses more.
// A floor beside a silence never ends a hold earlier either.
func TestLongerSilence(t *testing.T) {
	for number := range 300 {
		s := drawStop(1, number)
		previous := time.Duration(0)
		for quietFor := 500 * ms; quietFor <= 8*time.Second; quietFor += 500 * ms {
			r, withFloor := silence(quietFor), floorAndSilence(5*time.Second, quietFor)
			end := r.end(s)
			if end < previous || withFloor.end(s) < end {
				t.Errorf("stop %d: silence %v ends at %v, with a floor at %v; a shorter silence at %v", number, quietFor, end, withFloor.end(s), previous)
			}
			previous = end
		}
	}
}

// TestObserved: the statistics of known gaps.
func TestObserved(t *testing.T) {
	var o observed
	for _, at := range []time.Duration{2, 4, 5, 9} {
		o.add(request{at * time.Second, at*time.Second + 20*ms})
	}
	// RFC 6298 with gaps of 2, 2, 1 and 4 s: smoothed 2, 2, 1.875, 2.140625; deviation 1,
	// 0.75, 0.8125, 1.140625.
	want := observed{
		requests: 4, lastBegin: 9 * time.Second, lastByte: 9020 * ms, longest: 4 * time.Second,
		smoothed: 2140625 * time.Microsecond, deviation: 1140625 * time.Microsecond,
	}
	if o != want {
		t.Errorf("got  %+v\nwant %+v", o, want)
	}
	if o.meanGap() != 2250*ms {
		t.Errorf("mean gap %v", o.meanGap())
	}
}

// TestBounded: an adaptation stays within the bounds, and without a request the silence is
// the longest.
func TestBounded(t *testing.T) {
	tenGaps := adaptation{"10 x mean gap", func(o *observed) time.Duration { return 10 * o.meanGap() }}
	r := bounded(tenGaps, time.Second, 4*time.Second)
	if r.name != "10 x mean gap, 1 to 4 s" {
		t.Errorf("name %q", r.name)
	}
	for gap, want := range map[time.Duration]time.Duration{
		10 * ms: time.Second, 100 * ms: time.Second, 250 * ms: 2500 * ms, time.Second: 4 * time.Second, 3 * time.Second: 4 * time.Second,
	} {
		var o observed
		o.add(request{gap, gap})
		if got := r.quiet(&o); got != want {
			t.Errorf("gap %v: silence %v, want %v", gap, got, want)
		}
	}
	if got := r.end(newStop()); got != 4*time.Second {
		t.Errorf("no request: %v", got)
	}
}

// TestAdaptiveEnd: the silence follows the gaps. Requests each 100 ms make a silence of 1 s,
// so that a pause of 2 s loses the next request; requests each 300 ms make one of 3 s.
func TestAdaptiveEnd(t *testing.T) {
	r := bounded(adaptation{"10 x mean gap", func(o *observed) time.Duration { return 10 * o.meanGap() }}, time.Second, 4*time.Second)
	for gap, lost := range map[time.Duration]int{100 * ms: 1, 300 * ms: 0} {
		var requests []request
		for i := range 10 {
			at := time.Duration(i+1) * gap
			requests = append(requests, request{at, at})
		}
		at := requests[9].begin + 2*time.Second
		s := newStop(append(requests, request{at, at})...)
		if got := s.lost(r.end(s)); got != lost {
			t.Errorf("gap %v: %d lost, want %d", gap, got, lost)
		}
	}
}

// TestFixedRules: every rule has a name of its own, and every rule of the page exists.
func TestFixedRules(t *testing.T) {
	var names []string
	for _, r := range slices.Concat(fixedRules(), adaptiveRules()) {
		if slices.Contains(names, r.name) {
			t.Errorf("%q twice", r.name)
		}
		names = append(names, r.name)
	}
	for _, name := range pageRules {
		if !slices.Contains(names, name) {
			t.Errorf("no rule %q", name)
		}
	}
}
