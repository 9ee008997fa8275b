package traffic_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
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
			signal := hold(&row, &w)
			e, l := row.Window(last)
			if v := row.Judge(plays.Moments{Signal: signal, E: e, L: l}); row.Wrong(v) {
				t.Errorf("%s: the signal at %v, and due from %v to %v", v, signal, e, l)
			}
		})
	}
}

// hold returns when a hold with the flags of a row ends.
func hold(row *plays.Row, w *world.World) (at time.Duration) {
	flag := func(name, usual string) string {
		for _, word := range slices.Backward(row.Arguments()) {
			if value, is := strings.CutPrefix(word, "--"+name+"="); is {
				return value
			}
		}
		return usual
	}
	grace := plays.Duration(strings.TrimSuffix(flag("grace-period", ""), "s") + "s")
	floor := plays.Duration(flag("delay", "0s"))
	ceiling := min(grace-11*time.Second, plays.Duration(flag("max-delay", "1h")))
	until := flag("until", "")
	w.Config.Until = stop.Reason(until)
	w.QuietFor, w.Poll, w.Events = row.QuietFor, row.QuietFor/12, true
	w.MaxSilence = plays.Duration(flag("max-silence", "30s"))
	w.Then = func(_ *world.Hold, now time.Duration) { at = now }
	met := world.Condition(until)
	end, _ := w.Until(ceiling, func(v traffic.Verdict) bool {
		return at >= floor && (met(v) || v.Stuck || until == "quiet" && v.Kept)
	})
	return end
}
