package truth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// TestTable checks the rows: unique names, the words of how-long.md, no limit or server
// without a row, there or in kept's table, and the leads of the quick selection.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/how-long.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := strings.Join(strings.Fields(string(page)), " ")
	names, used := map[string]bool{}, map[string]bool{}
	for _, c := range table() {
		if names[c.name] {
			t.Errorf("two cases have the name %q", c.name)
		}
		names[c.name] = true
		used[c.words] = true
		used[c.server[0]] = true
		for _, p := range c.plays {
			for _, step := range p.steps {
				used[step.Verb] = true // ingress
			}
		}
		if !strings.Contains(limits, c.words) {
			t.Errorf("%s: docs/how-long.md has no %q", c.name, c.words)
		}
		if lead := c.lead(); c.quick && lead > 12*s {
			t.Errorf("%s: begins %v before TERM: too slow for the quick selection", c.name, lead)
		}
	}
	for _, columns := range stage.Rows(read("limits.txt")) {
		if !used[columns[3]] {
			t.Errorf("no row has the limit %q", columns[0])
		}
	}
	kept, err := os.ReadFile("../kept/testdata/rows.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range stage.Rows(string(kept)) {
		server, _, _ := strings.Cut(columns[1], " ")
		used[server] = true
	}
	scripts, _ := filepath.Glob("../peers/scripts/*.sh")
	if len(scripts) < 10 {
		t.Errorf("%d servers", len(scripts))
	}
	for _, path := range scripts {
		if name := strings.TrimSuffix(filepath.Base(path), ".sh"); !used[name] {
			t.Errorf("no row has the server %q", name)
		}
	}
}

// TestKept checks the rows against the table of kept connections in docs/presets.md: each
// server with "yes" has a row as proof, and no row shows that another closes them.
func TestKept(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/presets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "| server | closes kept connections |")
	text, _, _ = strings.Cut(text, "\n\n")
	shown := map[string]bool{}
	for _, c := range table() {
		for _, flag := range c.flags {
			preset, found := strings.CutPrefix(flag, "--preset=")
			shown[preset] = shown[preset] || found && c.race && c.words == ""
		}
	}
	for line := range strings.Lines(text) {
		columns := strings.Split(line, " | ")
		if len(columns) != 3 {
			continue
		}
		preset := strings.TrimPrefix(columns[0], "| ")
		// The preset go does not know whether the program has a handler.
		if closes := columns[1] == "yes"; closes != shown[preset] && preset != "go" {
			t.Errorf("docs/presets.md says that %s closes kept connections: %s", preset, columns[1])
		}
	}
}
