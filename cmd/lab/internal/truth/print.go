package truth

import (
	"fmt"
	"io"
	"strings"
)

// count returns the number of results with a verdict.
func (r *row) count(v verdict) int {
	n := 0
	for _, found := range r.results {
		if found.Err == "" && found.judge(r.c.graceful) == v {
			n++
		}
	}
	return n
}

// broken returns the first trial that could not be played, or nil.
func (r *row) broken() *result {
	for _, found := range r.results {
		if found.Err != "" {
			return found
		}
	}
	return nil
}

// wrong counts the wrong results.
func (r *row) wrong() int {
	n := 0
	for _, found := range r.results {
		if found.Err != "" || r.c.wrong(found.judge(r.c.graceful)) {
			n++
		}
	}
	return n
}

// failed reports that the row is wrong: after the quick selection if most results are, else
// if any is.
func (r *row) failed(quick bool) bool {
	if quick {
		return 2*r.wrong() > len(r.results)
	}
	return r.wrong() > 0
}

// print writes the table and returns an error if a row is wrong.
func print(out io.Writer, rows []*row, quick bool) error {
	var total [3]int
	var failed, skipped, again int
	fmt.Fprintln(out, "right early late  case")
	for _, r := range rows {
		if len(r.missing) > 0 {
			skipped++
			fmt.Fprintf(out, "                  %s: skipped: no %s\n", r.c.name, strings.Join(r.missing, ", "))
			continue
		}
		counts := [3]int{r.count(right), r.count(early), r.count(late)}
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
	text := r.c.name
	var signals []string
	for _, found := range r.results {
		if found.Err == "" {
			signals = append(signals, seconds(found.Signal))
		}
	}
	if len(signals) > 0 {
		text += fmt.Sprintf(": %s, seen %s", r.expected(), strings.Join(signals, ", "))
	}
	if r.c.precise && len(signals) > 0 {
		text += fmt.Sprintf(", lost %s", strings.Join(r.losses(), ", "))
	}
	text += r.raceSummary()
	if r.c.limit.words != "" {
		text += fmt.Sprintf(" (limit, %s: %s)", r.c.deviates, r.c.limit.words)
	}
	return text
}

// losses returns how many requests each trial has lost.
func (r *row) losses() []string {
	var all []string
	for _, found := range r.results {
		if found.Err == "" {
			all = append(all, fmt.Sprint(found.Lost))
		}
	}
	return all
}

// expected returns E and L, which a trial that lost a request does not know.
func (r *row) expected() string {
	for _, found := range r.results {
		if found.Err == "" && (found.Lost == 0 || r.c.precise) {
			return found.window()
		}
	}
	return "later"
}

func (r *result) window() string {
	return fmt.Sprintf("from %s to %s", seconds(r.E), seconds(r.L))
}

// explain prints the details of one wrong result.
func (r *row) explain(out io.Writer) {
	const indent = "                  "
	if b := r.broken(); b != nil {
		fmt.Fprintf(out, "%sFAILED: %s\n", indent, b.Err)
	}
	for _, found := range r.results {
		v := found.judge(r.c.graceful)
		if found.Err != "" || !r.c.wrong(v) {
			continue
		}
		expected := found.window()
		if found.Lost > found.MayCut {
			expected = fmt.Sprintf("lost %d, the first at %s", found.Lost, found.FirstLost)
		}
		fmt.Fprintf(out, "%s%s: %s, seen %s\n", indent, strings.ToUpper(string(v)), expected, seconds(found.Signal))
		fmt.Fprintf(out, "%s%s\n", indent, found.Message)
		if found.Stalled > r.c.maxStall()/2 {
			fmt.Fprintf(out, "%sthe machine stood still for %v\n", indent, found.Stalled.Round(ms))
		}
		return
	}
}
