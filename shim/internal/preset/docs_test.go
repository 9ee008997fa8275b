package preset

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/presets.md")

// TestPresetDocs: docs/presets.md has the tables of table.go.
func TestPresetDocs(t *testing.T) {
	const path = "../../../docs/presets.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := withRows(t, string(text), "| server | sent |", documented())
	want = withRows(t, want, "| server | closes kept connections |", documentedKept())
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatal("the tables of docs/presets.md are not those of table.go; see them with -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withRows returns a page with other rows in the table that begins with the words.
func withRows(t *testing.T, page, words, rows string) string {
	t.Helper()
	start := strings.Index(page, "\n"+words)
	if start < 0 {
		t.Fatalf("no table %q", words)
	}
	head := start + 1
	for range 2 { // the titles, and the line below
		head += strings.Index(page[head:], "\n") + 1
	}
	end := strings.Index(page[head:], "\n\n")
	if end < 0 {
		t.Fatalf("the table %q does not end", words)
	}
	return page[:head] + rows + page[head+end+1:]
}

// documentedKept returns what the presets' servers do with kept connections, in Markdown.
func documentedKept() string {
	var rows strings.Builder
	for _, p := range All() {
		closes := "no"
		if p.ClosesKept {
			closes = "yes"
		}
		if p.Kept != "" {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", p.Name, closes, p.Kept)
		}
	}
	return rows.String()
}

// documented returns the table of presets in Markdown.
func documented() string {
	var rows strings.Builder
	for _, p := range All() {
		name, says := p.Name, p.Says
		if len(p.Aliases) > 0 {
			name += " (" + strings.Join(p.Aliases, ", ") + ")"
		}
		if !p.Proven {
			name += "\\*"
		}
		if p.Caveat != "" {
			says += ". **Caveat:** " + p.Caveat
		}
		fmt.Fprintf(&rows, "| %s | `%s` | %s |\n", name, p.Schedule, says)
	}
	return rows.String()
}
