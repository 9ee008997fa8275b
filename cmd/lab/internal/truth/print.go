package truth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// count counts the results with a verdict.
func (r *row) count(v plays.Verdict) (n int) {
	for _, found := range r.results {
		if found.Verdict == v {
			n++
		}
	}
	return n
}

// failures counts the wrong results.
func (r *row) failures() int {
	n := r.broken
	for _, found := range r.results {
		if r.Wrong(found.Verdict) {
			n++
		}
	}
	return n
}

// printEnded writes when the holds have ended, and fails if a row is wrong: after the quick selection
// if most of its results are, else if any is.
func printEnded(rows []*row, quick bool) {
	line := func(r *row, text any) {
		fmt.Printf("%5d %5d %4d  %s\n", r.count(plays.Right), r.count(plays.Early), r.count(plays.Late), text)
	}
	var total row
	failed := 0
	fmt.Println("right early late  case")
	for _, r := range rows {
		line(r, r)
		r.explain()
		total.results = append(total.results, r.results...)
		total.again += r.again
		if n := r.failures(); n > 0 && (!quick || 2*n > len(r.results)+r.broken) {
			failed++
		}
	}
	line(&total, fmt.Sprintf("%d cases, %d of them wrong; %d trials played again, since the machine stood still",
		len(rows), failed, total.again))
	must.Be(failed == 0, "%d of %d cases wrong", failed, len(rows))
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
func (r *row) explain() {
	for _, found := range r.results {
		if r.Wrong(found.Verdict) {
			fmt.Printf("%s%s: %s\n", indent, strings.ToUpper(string(found.Verdict)), found.Message)
			counted := slices.DeleteFunc(slices.Clone(found.Losses), func(l loss) bool { return l.Raced })
			for _, l := range counted[:min(3, len(counted))] {
				fmt.Printf("%slost at %s: %s\n", indent, seconds(l.At), l.Error)
			}
			fmt.Printf("%sthe machine stood still for %v\n", indent, found.Stalled.Round(ms))
			return
		}
	}
}
