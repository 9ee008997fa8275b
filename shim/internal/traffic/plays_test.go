package traffic_test

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/flags"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/world"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestPlays plays the rows of package plays in the simulated kernel, as lab truth plays the rows
// with real sockets.
func TestPlays(t *testing.T) {
	for _, row := range plays.Table() {
		t.Run(row.Name, func(t *testing.T) {
			if !row.Simulated {
				t.Skip("with real sockets only")
			}
			w, last := world.Stage(&row)
			signal := hold(t, &row, &w)
			e, l := row.Window(last)
			if v := row.Judge(plays.Moments{Signal: signal, E: e, L: l}); row.Wrong(v) {
				t.Errorf("%s: the signal at %v, and due from %v to %v", v, signal, e, l)
			}
		})
	}
}

// hold returns when a hold with the flags of a row ends.
func hold(t *testing.T, row *plays.Row, w *world.World) (at time.Duration) {
	given := flags.Read(t, row.Arguments())
	planned := testutil.Must(plan.New(&given, plan.Place{Uncatchable: func(sig.Signal) string { return "" }}))
	gate := planned.Stop.Gate
	w.Config, w.Events = planned.Traffic, true
	w.Then = func(_ *world.Hold, now time.Duration) { at = now }
	met := world.Condition(string(gate.Until))
	end, _ := w.Until(gate.Ceiling, func(v traffic.Verdict) bool {
		return at >= gate.Floor && (met(v) || v.Stuck || gate.Until == stop.Quiet && v.Kept)
	})
	return end
}
