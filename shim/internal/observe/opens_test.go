package observe

import (
	"errors"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/procnet"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestPassiveOpens: connections that no sample sees are counted where the kernel's counter
// counts nothing else, and otherwise reported as "at least".
func TestPassiveOpens(t *testing.T) {
	for name, c := range map[string]struct {
		exact  bool
		active uint64 // connections made from the namespace, perhaps to itself
		err    error
		count  int
		more   bool
	}{
		"counted":             {true, 0, nil, 7, false},
		"others listen":       {false, 0, nil, 0, true},
		"connects itself":     {true, 1, nil, 0, true},
		"cannot read":         {true, 0, errors.New("denied"), 0, true},
		"nothing came":        {true, 0, nil, 0, false},
		"only others connect": {false, 1, nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Unix(1000, 0)
			j := traffic.New(traffic.Config{QuietFor: time.Second, Poll: time.Second}, start)
			first := procnet.Counters{ActiveOpens: 3, PassiveOpens: 100, InSegs: 5000}
			o := &observer{exact: c.exact, initial: first, passive: 100, segments: 5000}
			now := first
			if name != "nothing came" {
				now.PassiveOpens += 7
			}
			now.ActiveOpens += c.active
			j.Begin(start)
			o.recountUntold(start, j, now, c.err)
			j.End(true)
			if r := j.Summary(); r.Accepted != c.count || r.More != c.more {
				t.Errorf("%d connections, more: %v; want %d, %v", r.Accepted, r.More, c.count, c.more)
			}
		})
	}
}
