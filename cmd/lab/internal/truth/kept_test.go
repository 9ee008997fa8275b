package truth

import (
	"os"
	"strings"
	"testing"
)

// TestKept checks the cases against the table of kept connections in docs/presets.md: each
// server with "yes" has a case as proof, and no other server has.
func TestKept(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/presets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| server | closes kept connections |")
	table, _, _ = strings.Cut(table, "\n\n")
	said := map[string]bool{}
	for line := range strings.Lines(table) {
		if columns := strings.Split(line, " | "); len(columns) == 3 {
			said[strings.TrimPrefix(columns[0], "| ")] = columns[1] == "yes"
		}
	}
	shown := map[string]bool{}
	for _, on := range keptServers {
		closes, ok := said[on.preset]
		if !ok {
			t.Errorf("docs/presets.md does not say whether %s closes kept connections", on.preset)
		}
		if on.closes && !closes && on.preset != "go" { // the preset does not know the program
			t.Errorf("docs/presets.md denies that %s closes kept connections, as the case %q shows", on.preset, on.name)
		}
		shown[on.preset] = shown[on.preset] || on.closes
	}
	for preset, closes := range said {
		if closes && !shown[preset] {
			t.Errorf("no case shows that %s closes kept connections", preset)
		}
	}
}
