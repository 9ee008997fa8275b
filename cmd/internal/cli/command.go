package cli

import (
	"fmt"
	"slices"
)

// Subcommands are the words that, as the very first word, are no program.
var Subcommands = []string{"hold", "watch", "presets", "install"}

// CommandHint returns a hint about a command that was not found, or "".
func CommandHint(command []string) string {
	switch first := command[0]; {
	case slices.Contains(Subcommands, first):
		return fmt.Sprintf("for the subcommand, give %s as the first word, before any flag", first)
	case first == "lint":
		return "did you mean lameduck-lint?"
	}
	return ""
}
