package truth

import (
	"fmt"
	"io"
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
	}
	if r.Precise && len(losses) > 0 {
		text += ", lost " + strings.Join(losses, ", ")
	}
	if r.Race {
		text += "; " + r.figures().String()
	}
	if r.Words != "" {
		text += fmt.Sprintf(" (limit, %s: %s)", r.Deviates, r.Words)
	}
	return text
}

func (r *result) window() string {
	return fmt.Sprintf("from %s to %s", seconds(r.E), seconds(r.L))
}

// firstLost says when a request was lost and how.
func (r *result) firstLost() string {
	for _, l := range r.Losses {
		if !l.Raced {
			return fmt.Sprintf("the first at %s: %s", seconds(l.At), l.Error)
		}
	}
	return fmt.Sprintf("%d connections are still open", r.Open)
}

// explain prints the details of one wrong result.
func (r *row) explain(out io.Writer) {
	if len(r.broken) > 0 {
		fmt.Fprintf(out, "%sFAILED: %s\n", indent, r.broken[0])
	}
	for _, found := range r.results {
		if !r.Wrong(found.Verdict) {
			continue
		}
		expected := found.window()
		if found.Lost > r.MayCut {
			expected = fmt.Sprintf("lost %d, %s", found.Lost, found.firstLost())
		}
		fmt.Fprintf(out, "%s%s: %s, seen %s\n", indent, strings.ToUpper(string(found.Verdict)), expected, seconds(found.Signal))
		fmt.Fprintf(out, "%s%s\n", indent, found.Message)
		if found.Stalled > maxStall(r.Row)/2 {
			fmt.Fprintf(out, "%sthe machine stood still for %v\n", indent, found.Stalled.Round(ms))
		}
		return
	}
}
