package bench

import (
	"fmt"
	"math"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/tables"
)

// figures are what is measured: a key, the name and unit in the table, and the promise: a figure of
// lameduck is at most so many times as high as that of a contender, or as a number without one;
// 0 is no promise.
const figures = `
	start    | start-up, µs                     | tini-static  | 3.2
	# minor ones of the whole run
	faults   | page faults of /bin/true         | tini-static  | 4.4
	# from a signal to the command's answer
	latency  | signal, µs                       | tini-static  | 1.8
	# of the init while it reaps them
	storm    | storm of orphans, CPU ms         | tini-static  | 2
	paced    | an orphan each 20 ms, CPU ms     | tini-static  | 2
	size     | binary, kB                       |              | 5000
	rss      | Rss, kB                          |              | 0
	# which comes from no file
	anon     | anonymous memory, kB             | go           | 2.2
	threads  | threads                          |              | 0
	# of all threads
	switches | context switches a minute        |              | 3
	# with so many connections
	1000     | hold of 10 s, 1 000 open: CPU ms  | ss           | 0.4
	10000    | hold of 10 s, 10 000 open: CPU ms | ss           | 0.4
	50000    | hold of 10 s, 50 000 open: CPU ms | ss           | 0.4
`

// print prints the medians of what was measured, and fails if a budget is missed.
func (b *bench) print(names []string) {
	missed := 0
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "median\t")
	for _, name := range append(names, "lameduck's share", "budget") {
		fmt.Fprintf(t, "%s\t", name)
	}
	for _, g := range tables.Read[struct {
		Key, Title, Reference string
		Most                  float64
	}](figures) {
		found := b.median(g.Key, ours)
		if math.IsNaN(found) {
			continue
		}
		fmt.Fprintf(t, "\n%s\t", g.Title)
		for _, name := range names {
			fmt.Fprintf(t, "%s\t", format(b.median(g.Key, name)))
		}
		if g.Reference != "" {
			found /= b.median(g.Key, g.Reference)
		}
		if g.Most == 0 {
			continue
		}
		fmt.Fprintf(t, "%s\t%v\t", format(found), g.Most)
		if found > g.Most {
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
