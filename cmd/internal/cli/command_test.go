package cli

import "testing"

// TestCommandHint: the hint about a command that does not exist.
func TestCommandHint(t *testing.T) {
	for command, want := range map[string]string{
		"hold":    "for the subcommand, give hold as the first word, before any flag",
		"presets": "for the subcommand, give presets as the first word, before any flag",
		"lint":    "did you mean lameduck-lint?",
		"nginx":   "",
		"":        "",
	} {
		if got := CommandHint([]string{command}); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
