package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

var (
	errDenied = errors.New("denied")
	trigger   = time.Unix(1000, 0)
	atTrigger = procfs.Counters{ActiveOpens: 3, PassiveOpens: 100, InSegs: 5000}
)

// opensAt returns the counters of the trigger with more connections accepted.
func opensAt(more int) procfs.Counters {
	c := atTrigger
	c.PassiveOpens += uint64(more)
	return c
}

// TestPassiveOpens: without destroy events, connections that no sample shows are counted if
// the kernel's counter counts no other connections, and reported as "at least" if not.
func TestPassiveOpens(t *testing.T) {
	for name, c := range map[string]struct {
		comparable bool
		more       int
		active     uint64 // connections made from the namespace, perhaps to itself
		err        error
		count      int
		missed     bool
	}{
		"counted":             {true, 7, 0, nil, 7, false},
		"others listen":       {false, 7, 0, nil, 0, true},
		"connects itself":     {true, 7, 1, nil, 0, true},
		"cannot read":         {true, 7, 0, errDenied, 0, true},
		"nothing came":        {true, 0, 0, nil, 0, false},
		"only others connect": {false, 7, 1, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			tr := traffic.New(traffic.Config{QuietFor: time.Second, Poll: time.Second}, trigger)
			p := opens{comparable: c.comparable}
			p.begin(atTrigger, nil, false)
			counters := opensAt(c.more)
			counters.ActiveOpens += c.active
			var rest traffic.Rest
			p.check(trigger, counters, c.err, &events{}, 0, &rest)
			tr.Begin(trigger)
			tr.End(rest)
			if r := tr.Summary(); r.Accepted != c.count || r.More != c.missed {
				t.Errorf("%d connections, more: %v; want %d, %v", r.Accepted, r.More, c.count, c.missed)
			}
		})
	}
}

// TestPassiveOpensFlood: the number of connections is unknown during a flood, and if the
// counters of the trigger could not be read.
func TestPassiveOpensFlood(t *testing.T) {
	for name, c := range map[string]struct {
		flooded bool
		err     error
	}{"flood": {true, nil}, "no counters at the trigger": {false, errDenied}} {
		p := opens{comparable: true}
		p.begin(atTrigger, c.err, false)
		var e events
		if c.flooded {
			e.floodedAt = trigger
		}
		var rest traffic.Rest
		p.check(trigger, opensAt(7), nil, &e, 0, &rest)
		if rest.Accepted != 0 || !rest.MissedAt.Equal(trigger) {
			t.Errorf("%s: %+v", name, rest)
		}
	}
}

// TestPassiveOpensLate: the health listener counts a connection up to three samples later
// than the kernel. Until then a surplus is not activity.
func TestPassiveOpensLate(t *testing.T) {
	var p opens
	p.begin(atTrigger, nil, true)
	for i, c := range []struct {
		more   int
		missed bool
	}{
		{0, false},
		{1, false}, {1, false}, {0, false}, // accepted by the health listener at last
		{1, false}, {1, false}, {1, false}, {1, true}, // of the command
		{1, false},
	} {
		var rest traffic.Rest
		p.check(trigger, opensAt(c.more), nil, &events{}, 0, &rest)
		if missed := !rest.MissedAt.IsZero(); missed != c.missed {
			t.Errorf("sample %d: missed is %v", i, missed)
		}
	}
}

// TestOpenedBetweenSamples: with destroy events, a surplus over connections to ourselves
// will be reported.
func TestOpenedBetweenSamples(t *testing.T) {
	type sample struct {
		more, self int
		err        error
		want       int
	}
	for name, c := range map[string]struct {
		comparable bool
		samples    []sample
	}{
		"connections":   {true, []sample{{2, 0, nil, 2}, {2, 0, nil, 0}, {5, 0, nil, 3}}},
		"to ourselves":  {true, []sample{{2, 1, nil, 1}, {4, 3, nil, 0}, {5, 3, nil, 1}}},
		"cannot read":   {true, []sample{{9, 0, errDenied, 0}, {3, 0, nil, 3}}},
		"self, unread":  {true, []sample{{1, 1, errDenied, 0}, {1, 1, nil, 0}}},
		"others listen": {false, []sample{{2, 0, nil, 0}}},
	} {
		p := opens{comparable: c.comparable}
		p.begin(atTrigger, nil, false)
		for i, s := range c.samples {
			var rest traffic.Rest
			p.check(trigger, opensAt(s.more), s.err, &events{reader: &fakeEvents{}}, s.self, &rest)
			if rest.Opened != s.want || !rest.MissedAt.IsZero() {
				t.Errorf("%s, sample %d: %+v, want %d opened", name, i, rest, s.want)
			}
		}
	}
}

// TestSegmentsArrived: a change of InSegs counts once.
func TestSegmentsArrived(t *testing.T) {
	var p opens
	p.begin(atTrigger, nil, false)
	for i, c := range []struct {
		segments uint64
		err      error
		want     bool
	}{{5000, nil, false}, {5001, nil, true}, {5001, nil, false}, {0, errDenied, false}, {5001, nil, false}, {5009, nil, true}} {
		var rest traffic.Rest
		p.check(trigger, procfs.Counters{InSegs: c.segments}, c.err, &events{}, 0, &rest)
		if rest.Segments != c.want {
			t.Errorf("sample %d: %v", i, rest.Segments)
		}
	}
}
