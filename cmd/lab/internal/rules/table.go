package rules

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// printTables prints the results: over all stops, then by part.
func printTables(out io.Writer, results []result) {
	printAll(out, results)
	printParts(out, "stops that lose a request, of 1 000", results, func(f *figures) string { return count(f.losingRate()) })
	printParts(out, "requests lost, of 1 000", results, func(f *figures) string { return count(f.lostRate()) })
	printParts(out, "hold, median", results, func(f *figures) string { return inSeconds(f.hold.median) })
	printParts(out, "hold, 95 %", results, func(f *figures) string { return inSeconds(f.hold.p95) })
	printParts(out, "excess, median", results, func(f *figures) string { return inSeconds(f.excess.median) })
	printParts(out, "excess, 95 %", results, func(f *figures) string { return inSeconds(f.excess.p95) })
}

func printAll(out io.Writer, results []result) {
	t := newTable(out)
	t.row("", "stops that", "requests lost", "", "hold:", "", "excess:", "")
	t.row("", "lose, of 1 000", "per stop", "of 1 000", "median", "95 %", "median", "95 %")
	for _, r := range results {
		f := r.byPart[everyStop]
		t.row(r.rule, count(f.losingRate()), fmt.Sprintf("%.2f", f.lostPerStop()), count(f.lostRate()),
			inSeconds(f.hold.median), inSeconds(f.hold.p95), inSeconds(f.excess.median), inSeconds(f.excess.p95))
	}
	t.Flush()
	fmt.Fprint(out, `
A stop loses a request that comes after the hold. excess: from the end of the last
request to the end of the hold, 0 for a hold that ended before.
`)
}

// printParts prints one figure, with a column for each part.
func printParts(out io.Writer, title string, results []result, figure func(*figures) string) {
	fmt.Fprintln(out)
	t := newTable(out)
	header := []string{title}
	for _, p := range parts {
		header = append(header, p.name)
	}
	t.row(header...)
	for _, r := range results {
		cells := []string{r.rule}
		for _, p := range parts {
			cells = append(cells, figure(r.byPart[p.name]))
		}
		t.row(cells...)
	}
	t.Flush()
}

// pageRules are the rules in the table of docs/how-long.md.
var pageRules = []string{
	"sleep 5 s", "sleep 10 s", "sleep 15 s",
	"silence 1 s", "silence 3 s", "silence 4 s", "silence 5 s",
	"floor 5 s + silence 3 s",
}

// pageTable returns the table of docs/how-long.md, in Markdown.
func pageTable(results []result) string {
	lines := []string{
		"| rule | stops that lose a request, of 1 000 | requests lost, of 1 000 | hold: median | 95 % | too long by: median | 95 % |",
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
	}
	for _, name := range pageRules {
		f := find(results, name).byPart[everyStop]
		cells := []string{name, count(f.losingRate()), count(f.lostRate()),
			inSeconds(f.hold.median), inSeconds(f.hold.p95), inSeconds(f.excess.median), inSeconds(f.excess.p95)}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return strings.Join(lines, "\n") + "\n"
}

// find returns the result of a rule, given by name.
func find(results []result, rule string) result {
	return results[slices.IndexFunc(results, func(r result) bool { return r.rule == rule })]
}

// count formats a number of 1 000: a small number with one decimal.
func count(f float64) string {
	if f > 0 && f < 10 {
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// table aligns columns. The first column has words.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table {
	return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

func (t table) row(cells ...string) {
	const words = 36 // the length of the longest title
	fmt.Fprintf(t, "%-*s\t%s\t\n", words, cells[0], strings.Join(cells[1:], "\t"))
}
