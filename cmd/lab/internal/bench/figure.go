package bench

import (
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// figure is a quantity that is measured, by its name and unit in the tables.
type figure string

const (
	wall     figure = "start-up µs" // the whole run of a command that does nothing
	cpu      figure = "CPU µs"      // of the same, the command's included
	faults   figure = "page faults" // minor ones of the whole run of /bin/true
	wallMany figure = "20k args µs" // wall with 20 000 arguments
	latency  figure = "signal µs"   // from a signal to the command's answer
	size     figure = "binary kB"
	rss      figure = "Rss kB"
	anon     figure = "anonymous kB" // memory that comes from no file
	threads  figure = "threads"
	switches figure = "switches/min"            // context switches of all threads
	hold1    figure = "hold of 10 s, 1 000: ms" // processor time with so many connections
	hold10   figure = "10 000: ms"
	hold50   figure = "50 000: ms"
	unseen   figure = "lost, of 10 000 short ones/s" // missing from the report, which does not say "at least"
)

// print prints the medians, a line for each contender.
func (b *bench) print(field []contender, columns ...figure) {
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\nmedians\t")
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c)
	}
	for _, who := range field {
		fmt.Fprintf(t, "\n%s\t", who.name)
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", format(b.median(c, who.name)))
		}
	}
	fmt.Fprintln(t)
	t.Flush()
}

// median returns NaN for no samples.
func (b *bench) median(what figure, name string) float64 {
	samples := b.figures[of{what, name}]
	if len(samples) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// format returns a value with three digits or more, and nothing for NaN.
func format(value float64) string {
	switch {
	case math.IsNaN(value):
		return ""
	case value < 100:
		return fmt.Sprintf("%.3g", value)
	}
	return fmt.Sprintf("%.0f", value)
}

// budgets is the table of promises: a figure of lameduck is at most so many times as high as the
// reference's, or a plain number without a reference.
var budgets = []struct {
	figure    figure
	reference string
	most      float64
}{
	{wall, tini, 3.2},
	{faults, tini, 4.4},
	{wallMany, tini, 3},
	{latency, tini, 1.8},
	{size, "", 5000},
	{anon, "", 1000},
	{switches, "", 3},
	{hold1, ss, 0.4},
	{hold10, ss, 0.4},
	{hold50, ss, 0.4},
	{unseen, "", 0},
}

// judge prints the ratios, and fails if a budget is missed. A budget without figures counts as
// held.
func (b *bench) judge() {
	missed := 0
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nwhat\treference\tfound\tbudget")
	for _, g := range budgets {
		found := b.median(g.figure, ours)
		if g.reference != "" {
			found /= b.median(g.figure, g.reference)
		}
		verdict := ""
		if found > g.most {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\n", g.figure, g.reference, format(found), g.most, verdict)
	}
	t.Flush()
	must.Be(missed == 0, "budgets missed: %d", missed)
}
