package truth

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// failures counts the wrong results.
func (r *row) failures() int {
	n := len(r.broken)
	for _, found := range r.results {
		if r.Wrong(found.Verdict) {
			n++
		}
	}
	return n
}

// failed reports that the row is wrong: after the quick selection if most results are, else
// if any is.
func (r *row) failed(quick bool) bool {
	if quick {
		return 2*r.failures() > len(r.results)+len(r.broken)
	}
	return r.failures() > 0
}

// printEnded writes when the holds have ended, and returns an error if a row is wrong.
func printEnded(out io.Writer, rows []*row, quick bool) error {
	const line = "%5d %5d %4d  %s"
	total := map[plays.Verdict]int{}
	var failed, skipped, again int
	fmt.Fprintln(out, "right early late  case")
	for _, r := range rows {
		if len(r.lacking) > 0 {
			skipped++
			fmt.Fprintf(out, "%s%s: skipped: no %s\n", indent, r.Name, strings.Join(r.lacking, ", "))
			continue
		}
		counts := map[plays.Verdict]int{}
		for _, found := range r.results {
			counts[found.Verdict]++
			total[found.Verdict]++
		}
		fmt.Fprintf(out, line+"\n", counts[plays.Right], counts[plays.Early], counts[plays.Late], r)
		r.explain(out)
		again += r.again
		if r.failed(quick) {
			failed++
		}
	}
	summary := fmt.Sprintf("%d cases, %d of them wrong, %d skipped; %d trials played again, since the machine stood still",
		len(rows), failed, skipped, again)
	fmt.Fprintf(out, line+"\n", total[plays.Right], total[plays.Early], total[plays.Late], summary)
	if failed > 0 {
		return fmt.Errorf("%d of %d cases wrong", failed, len(rows))
	}
	return nil
}

const indent = "                  "

// String returns the name, when the signal of the first trial should have been sent, and when those of
// all were.
func (r *row) String() string {
	text := r.Name
	for i, found := range r.results {
		if i == 0 {
			text += fmt.Sprintf(": from %s to %s, seen", seconds(found.E), seconds(found.L))
		}
		text += " " + seconds(found.Signal)
		if found.Lost > 0 {
			text += fmt.Sprintf(" (lost %d)", found.Lost)
		}
	}
	if r.Race {
		text += "; " + r.figures().String()
	}
	if r.Words != "" {
		text += fmt.Sprintf(" (limit, %s: %s)", r.Deviates, r.Words)
	}
	return text
}

// explain prints the details of one wrong result.
func (r *row) explain(out io.Writer) {
	if len(r.broken) > 0 {
		fmt.Fprintf(out, "%sFAILED: %s\n", indent, r.broken[0])
	}
	for _, found := range r.results {
		if r.Wrong(found.Verdict) {
			fmt.Fprintf(out, "%s%s: %s\n", indent, strings.ToUpper(string(found.Verdict)), found.Message)
			counted := slices.DeleteFunc(slices.Clone(found.Losses), func(l loss) bool { return l.Raced })
			for _, l := range counted[:min(3, len(counted))] {
				fmt.Fprintf(out, "%slost at %s: %s\n", indent, seconds(l.At), l.Error)
			}
			fmt.Fprintf(out, "%sthe machine stood still for %v\n", indent, found.Stalled.Round(ms))
			return
		}
	}
}
