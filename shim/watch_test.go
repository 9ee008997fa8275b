package shim

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestLateEvents: after a signal one more sample ends watch, and where a listener has gone, one
// that late events have had the time to reach.
func TestLateEvents(t *testing.T) {
	ended := cost.Result{Ends: []cost.End{{Port: 80, At: time.Now()}}}
	for _, c := range []struct {
		cost  cost.Result
		after time.Duration
		done  bool
	}{{after: -1}, {after: 1, done: true}, {ended, cost.LateEvent / 2, false}, {ended, cost.LateEvent + 1, true}} {
		w := Watcher{Say: func(string) error { return nil }}
		s := newWatch(testutil.Must(newPlan(&Config{}, plan.Place{})), w, time.Now())
		s.signaled(sig.INT)
		s.sampled(&observe.Snapshot{Began: s.endedAt.Add(c.after), Cost: c.cost})
		if s.done != c.done {
			t.Errorf("%v after the signal, %d listeners gone: done %v", c.after, len(c.cost.Ends), s.done)
		}
	}
}
