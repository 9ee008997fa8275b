package shim

import (
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// TestViewOfSlowRequest: a request that was silent before the first view is in flight, as
// for a hold that begins with the view, and is given up as late as in that hold.
func TestViewOfSlowRequest(t *testing.T) {
	first := time.Unix(1_000_000_000, 0)
	v := &viewer{start: first.Add(-known), givesUp: first.Add(30 * time.Second)}
	s := &observe.Snapshot{Traffic: traffic.Summary{Open: 1, LeftOut: traffic.LeftOut{GivenUp: 1}}, Verdict: traffic.Verdict{Settled: true, Quiet: true}}
	for after, inFlight := range map[time.Duration]int{0: 1, 29 * time.Second: 1, 30 * time.Second: 0} {
		view := v.view(first.Add(after), s)
		if view.InFlight != inFlight || view.Quiet != (inFlight == 0) || !view.Settled || view.Open != 1 {
			t.Errorf("after %v: %d in flight, quiet: %v, settled: %v, %d open; want %d in flight", after, view.InFlight, view.Quiet, view.Settled, view.Open, inFlight)
		}
	}
}
