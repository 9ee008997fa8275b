package bench

import (
	"fmt"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
)

// The quantities that are measured, by their names and units in the table.
const (
	wall     = "start-up, µs"             // the whole run of a command that does nothing
	faults   = "page faults of /bin/true" // minor ones of the whole run
	latency  = "signal, µs"               // from a signal to the command's answer
	storm    = "storm of orphans, CPU ms" // of the init while it reaps them
	paced    = "an orphan each 20 ms, CPU ms"
	size     = "binary, kB"
	rss      = "Rss, kB"
	anon     = "anonymous memory, kB" // which comes from no file
	threads  = "threads"
	switches = "context switches a minute"        // of all threads
	hold1    = "hold of 10 s, 1 000 open: CPU ms" // with so many connections
	hold10   = "hold of 10 s, 10 000 open: CPU ms"
	hold50   = "hold of 10 s, 50 000 open: CPU ms"
)

// figures are the rows of the table, with the promises: a figure of lameduck is at most so many times
// as high as the reference's, or as a number without a reference. 0 is no promise.
var figures = []struct {
	figure, reference string
	most              float64
}{
	{wall, tini, 3.2},
	{faults, tini, 4.4},
	{latency, tini, 1.8},
	{storm, tini, 2},
	{paced, tini, 2},
	{size, "", 5000},
	{rss, "", 0},
	{anon, goer, 2.2},
	{threads, "", 0},
	{switches, "", 3},
	{hold1, ss, 0.4},
	{hold10, ss, 0.4},
	{hold50, ss, 0.4},
}

// print prints the medians of what was measured, and fails if a budget is missed.
func (b *bench) print(names []string) {
	missed := 0
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "median\t")
	for _, name := range append(names, "lameduck's share", "budget") {
		fmt.Fprintf(t, "%s\t", name)
	}
	for _, g := range figures {
		found := b.median(g.figure, ours)
		if math.IsNaN(found) {
			continue
		}
		fmt.Fprintf(t, "\n%s\t", g.figure)
		for _, name := range names {
			fmt.Fprintf(t, "%s\t", format(b.median(g.figure, name)))
		}
		if g.reference != "" {
			found /= b.median(g.figure, g.reference)
		}
		if g.most > 0 {
			fmt.Fprintf(t, "%s\t%v\t", format(found), g.most)
		}
		if g.most > 0 && found > g.most {
			fmt.Fprint(t, "MISSED\t")
			missed++
		}
	}
	fmt.Fprintln(t)
	t.Flush()
	must.Be(missed == 0, "budgets missed: %d", missed)
}

// median returns NaN for no samples.
func (b *bench) median(what, name string) float64 {
	samples := b.figures[[2]string{what, name}]
	if len(samples) == 0 {
		return math.NaN()
	}
	return slices.Sorted(slices.Values(samples))[len(samples)/2]
}

// format returns a value with two decimals at most, and nothing for NaN.
func format(value float64) string {
	if math.IsNaN(value) {
		return ""
	}
	return fmt.Sprint(math.Round(100*value) / 100)
}
