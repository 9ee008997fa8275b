package report

import "testing"

func TestSpelling(t *testing.T) {
	s := Spelling{"until": "LAMEDUCK_UNTIL", "group": "-g", "max-delay": "LAMEDUCK_MAX_DELAY", "parent-death-signal": "-p"}
	for text, want := range map[string]string{
		"":                              "",
		"a - b -- c --":                 "a - b -- c --",
		"see --until=quiet":             "see LAMEDUCK_UNTIL=quiet",
		"--until, --max-delay: --until": "LAMEDUCK_UNTIL, LAMEDUCK_MAX_DELAY: LAMEDUCK_UNTIL",
		"exec, or --group":              "exec, or -g",
		"--parent-death-signal=%v: %w":  "-p %v: %w",
		"--die-on-term, --untilt":       "--die-on-term, --untilt",
		"---until":                      "---until",
	} {
		if got := s.In(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := Spelling(nil).In(text); got != text {
			t.Errorf("%q becomes %q under lameduck's own name", text, got)
		}
	}
}
