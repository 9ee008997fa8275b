package truth

import (
	"fmt"
	"io"
	"strings"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// count returns the number of results with a verdict.
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

// print writes the table and returns an error if a row is wrong.
func print(out io.Writer, rows []*row, quick bool) error {
	var total [3]int
	var failed, skipped, again int
	fmt.Fprintln(out, "right early late  case")
	for _, r := range rows {
		if len(r.lacking) > 0 {
			skipped++
			fmt.Fprintf(out, "                  %s: skipped: no %s\n", r.Name, strings.Join(r.lacking, ", "))
			continue
		}
		counts := [3]int{r.count(plays.Right), r.count(plays.Early), r.count(plays.Late)}
		again += r.again
		for i, n := range counts {
			total[i] += n
		}
		fmt.Fprintf(out, "%5d %5d %4d  %s\n", counts[0], counts[1], counts[2], r)
		r.explain(out)
		if r.failed(quick) {
			failed++
		}
	}
	fmt.Fprintf(out, "%5d %5d %4d  %d cases, %d of them wrong, %d skipped; ",
		total[0], total[1], total[2], len(rows), failed, skipped)
	fmt.Fprintf(out, "%d trials played again, since the machine stood still\n", again)
	if failed > 0 {
		return fmt.Errorf("%d of %d cases wrong", failed, len(rows))
	}
	return nil
}

// String returns the name with the moments of the first trial and all signals.
func (r *row) String() string {
	text := r.Name
	expected := "later" // a trial that lost a request does not know E and L
	var signals, losses []string
	for _, found := range r.results {
		if expected == "later" && (found.Lost == 0 || r.Precise) {
			expected = found.window()
		}
		signals = append(signals, seconds(found.Signal))
		losses = append(losses, fmt.Sprint(found.Lost))
	}
	if len(signals) > 0 {
		text += fmt.Sprintf(": %s, seen %s", expected, strings.Join(signals, ", "))
		if r.Precise {
			text += fmt.Sprintf(", lost %s", strings.Join(losses, ", "))
		}
	}
	text += r.raceSummary()
	if r.Words != "" {
		text += fmt.Sprintf(" (limit, %s: %s)", r.Deviates, r.Words)
	}
	return text
}

func (r *result) window() string {
	return fmt.Sprintf("from %s to %s", seconds(r.E), seconds(r.L))
}

// explain prints the details of one wrong result.
func (r *row) explain(out io.Writer) {
	const indent = "                  "
	if len(r.broken) > 0 {
		fmt.Fprintf(out, "%sFAILED: %s\n", indent, r.broken[0])
	}
	for _, found := range r.results {
		if !r.Wrong(found.Verdict) {
			continue
		}
		expected := found.window()
		if found.Lost > r.MayCut {
			expected = fmt.Sprintf("lost %d, the first at %s", found.Lost, found.FirstLost)
		}
		fmt.Fprintf(out, "%s%s: %s, seen %s\n", indent, strings.ToUpper(string(found.Verdict)), expected, seconds(found.Signal))
		fmt.Fprintf(out, "%s%s\n", indent, found.Message)
		if found.Stalled > maxStall(r.Row)/2 {
			fmt.Fprintf(out, "%sthe machine stood still for %v\n", indent, found.Stalled.Round(ms))
		}
		return
	}
}
