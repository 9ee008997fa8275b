package rollout

import "testing"

func TestEnded(t *testing.T) {
	for report, want := range map[string]string{
		"lameduck: TERM: holding 5 s, then TERM\nlameduck: TERM: held 19.0 s (ceiling); 3 new connections\n": "ceiling",
		"lameduck: TERM: held 5.0 s (kept); sent TERM at +5.0 s (at a lull)":                                 "kept at a lull",
		"lameduck: TERM passed on at once":                                                                   "",
	} {
		if got := ended(report); got != want {
			t.Errorf("the reason in %q is %q, want %q", report, got, want)
		}
	}
}
