package cli

import (
	"testing"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"abc", "bc", 1}, {"abc", "abxc", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 2}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("edits(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestNearest: a mistyped variable brings the nearest to mind.
func TestNearest(t *testing.T) {
	for got, want := range map[string]string{"LAMEDUCK_DELYA": "LAMEDUCK_DELAY", "LAMEDUCK_GRACE": "LAMEDUCK_GRACE_PERIOD", "LAMEDUCK_QUIETFOR": "LAMEDUCK_QUIET_FOR",
		"LAMEDUCK_TERMINATION_GRACE_PERIOD": "LAMEDUCK_GRACE_PERIOD", "LAMEDUCK_TERMINATION_GRACE_PERIOD_SECONDS": "LAMEDUCK_GRACE_PERIOD", "LAMEDUCK_HEALTH_DURIN": "LAMEDUCK_HEALTH_DURING",
		"LAMEDUCK_DELAY_SECONDS": "LAMEDUCK_DELAY", "LAMEDUCK_THE_MAX_DELAY": "LAMEDUCK_MAX_DELAY", "LAMEDUCK_PROBES": "LAMEDUCK_IGNORE_PROBES"} {
		if n := nearest(got, variables(flagsOf(new(Run)))); n != want {
			t.Errorf("%s: %s, want %s", got, n, want)
		}
	}
}
