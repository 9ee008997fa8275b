package preset

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/presets.md")

// TestPresetDocs: docs/presets.md has the table of table.go.
func TestPresetDocs(t *testing.T) {
	const path = "../../../docs/presets.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| --- | --- | --- | --- | --- | --- |\n"
	before, rest, ok := strings.Cut(string(text), head)
	end := strings.Index(rest, "\n\n")
	if !ok || end < 0 {
		t.Fatal("no table")
	}
	want := before + head + documented() + rest[end+1:]
	if string(text) == want {
		return
	}
	if !*update {
		t.Fatal("the table of docs/presets.md is not that of table.go; see it with -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// documented returns the table of presets in Markdown.
func documented() string {
	var rows strings.Builder
	for _, p := range All() {
		exit := "its own"
		for _, e := range p.Exit {
			exit = fmt.Sprintf("%d as %d", e.From, e.To)
		}
		proof := "documentation"
		if p.Proven {
			proof = "tests"
		}
		name := p.Name
		if len(p.Aliases) > 0 {
			name += " (" + strings.Join(p.Aliases, ", ") + ")"
		}
		fmt.Fprintf(&rows, "| %s | `%s` | %s | %s | %s | %s |\n", name, p.Schedule, p.Says, exit, caveat(&p), proof)
	}
	return rows.String()
}

// caveat returns all caveats of a preset.
func caveat(p *Preset) string {
	var all []string
	for _, c := range p.Caveats {
		all = append(all, c.Says)
	}
	return strings.Join(all, "; ")
}
