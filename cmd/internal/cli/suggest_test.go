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

// TestNearest: a name is near to another that is few edits away, whatever the case and the
// separators.
func TestNearest(t *testing.T) {
	names := []string{"DELAY", "GRACE_PERIOD", "LINGER", "QUIET_FOR"}
	for name, want := range map[string]string{"DELYA": "DELAY", "gracePeriod": "GRACE_PERIOD", "quiet-for": "QUIET_FOR", "IMAGE": "", "X": "", "": "", "GRACE": ""} {
		if got := nearest(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
