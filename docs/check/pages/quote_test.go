package pages

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestQuotes: the words in quotes in the tables of docs/troubleshooting.md are words of a
// report or of a warning. Figures and addresses may differ.
func TestQuotes(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile(root + "/testdata/report.txt")
	if err != nil {
		t.Fatal(err)
	}
	known, quotes := figureless(string(golden)), 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| \"") {
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(cell, -1) {
			quotes++
			if !strings.Contains(known, figureless(m[1])) && m[1] != "nothing to wait for" {
				t.Errorf("no report says %q", m[1])
			}
		}
	}
	if quotes < 10 {
		t.Errorf("%d quotes", quotes)
	}
}
