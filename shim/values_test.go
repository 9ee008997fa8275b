package shim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// TestUncatchableRewrites: a signal that this build cannot catch is neither rewritten nor starts
// a stop, that of no preset either.
func TestUncatchableRewrites(t *testing.T) {
	for s := sig.Signal(1); s <= sig.Max; s++ {
		why := sigcatch.Uncatchable(s)
		for _, cfg := range []Config{{Rewrites: []Rewrite{{From: s, To: sig.TERM}}}, {StopSignals: []Signal{sig.QUIT, s}}} {
			_, err := plan.New(&cfg, plan.Place{Uncatchable: sigcatch.Uncatchable})
			text := fmt.Sprint(err)
			hasReason := strings.Contains(text, s.String()) && strings.Contains(text, why)
			if (err != nil) != (why != "") || err != nil && !hasReason {
				t.Errorf("%v: %v; want an error with %q", s, err, why)
			}
		}
	}
	for _, p := range Presets() {
		for _, s := range p.StopSignals {
			if why := sigcatch.Uncatchable(s); why != "" {
				t.Errorf("%s: %v cannot start a stop: %s", p.Name, s, why)
			}
		}
	}
}
