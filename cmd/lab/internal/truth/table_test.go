package truth

import (
	"os"
	"strings"
	"testing"
)

// TestTable checks the cases: unique names, and the limits of the page.
func TestTable(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/how-long.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := strings.Join(strings.Fields(string(page)), " ")
	names := map[string]bool{}
	for _, c := range table() {
		if names[c.name] {
			t.Errorf("two cases have the name %q", c.name)
		}
		names[c.name] = true
		if c.limit.words != "" && !strings.Contains(limits, c.limit.words) {
			t.Errorf("%s: docs/how-long.md has no %q", c.name, c.limit.words)
		}
		if (c.limit.words == "") != (c.limit.deviates == "") {
			t.Errorf("%s: a limit needs words and a deviation", c.name)
		}
		if lead := newTrial(&c).lead(); c.quick && lead > 12*s {
			t.Errorf("%s: begins %v before TERM: too slow for the quick selection", c.name, lead)
		}
	}
}
