package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

const (
	width  = 79
	margin = "  "
)

// paper is what the demo is printed on: fewer than 80 columns, and no colour
// unless a terminal shows it.
type paper struct {
	out       *os.File
	good, bad string // the two symbols of a row
}

func newPaper(out *os.File) *paper {
	p := &paper{out, ".", "x"}
	info, err := out.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		p.good, p.bad = "\x1b[32m.\x1b[0m", "\x1b[31mx\x1b[0m"
	}
	return p
}

func (p *paper) printf(format string, args ...any) { fmt.Fprintf(p.out, format, args...) }

func (p *paper) intro() {
	p.printf("Two replicas behind a balancer; the old one is stopped, as in every rollout.\n")
	p.printf("The balancer learns of it late, as they do: it goes on sending for %.0f s.\n", lag.Seconds())
	p.printf("%.0f requests/s, no retries. A column is %.1f s: %s all answered, %s some failed.\n",
		1/period.Seconds(), column.Seconds(), p.good, p.bad)
}

func (p *paper) title(name, command string) {
	p.printf("\n%-16s$ %s\n\n", name, command)
}

// row goes on with an act's row, as the act plays.
func (p *paper) row(failed []bool) {
	for _, bad := range failed {
		symbol := p.good
		if bad {
			symbol = p.bad
		}
		p.printf("%s", symbol)
	}
}

// marks writes what happened under the row, the last first, so that no text is
// in another's way:
//
//	|     balancer stops sending
//	TERM, process gone
func (p *paper) marks(marks []mark) {
	for i, m := range slices.Backward(marks) {
		line := []byte(strings.Repeat(" ", m.column))
		for _, earlier := range marks[:i] {
			line[earlier.column] = '|'
		}
		p.printf("%s%s%s\n", margin, line, m.text)
	}
}

// quote shows what a process wrote, if anything, wrapped between words.
func (p *paper) quote(text string) {
	if text == "" {
		return
	}
	for line := range strings.Lines(text) {
		used := 0
		for _, word := range strings.Fields(line) {
			before := " "
			if used == 0 || used+len(before)+len(word) > width {
				before = "\n" + margin
				used = len(margin)
			}
			p.printf("%s%s", before, word)
			used += len(before) + len(word)
		}
	}
	p.printf("\n")
}

func (p *paper) summary(name string, a *act) {
	p.printf("%-16s%d requests  %-28sgone %.1f s after TERM\n", name, total, &a.tally, a.gone.Seconds())
}
