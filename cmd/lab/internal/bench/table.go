package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// column is a column in a table of medians.
type column struct {
	figure     figure
	name, unit string
	digits     int
}

// columns are for the inits, sampleColumns for samples of traffic.
var columns = []column{
	{wall, "start-up", "wall µs", 0}, {cpu, "", "CPU µs", 0}, {faults, "", "faults", 0}, {wallMany, "", "20k args", 0},
	{rss, "idle:", "Rss kB", 0}, {pss, "", "Pss kB", 0}, {anon, "", "anon kB", 0},
	{threads, "", "threads", 0}, {switches, "", "sw/min", 1},
	{latency, "signal", "µs", 1}, {storm, "storm", "CPU ms", 1}, {size, "binary", "kB", 0},
}

var sampleColumns = []column{
	{sample1, "sample of", "1 000 µs", 0}, {sample10, "", "10 000 µs", 0}, {sample50, "", "50 000 µs", 0},
	{hold, "hold of 10 s,", "10 000: CPU ms", 0}, {unseen, "10 000/s:", "lost", 0},
}

// printFigures prints the medians, a line for each contender.
func printFigures(w io.Writer, field []contender, columns []column, f figures) {
	names, units := "medians", ""
	for _, c := range columns {
		names += "\t" + c.name
		units += "\t" + c.unit
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\t\n%s\t\n", names, units)
	for _, who := range field {
		row := []string{who.name}
		for _, c := range columns {
			cell := "-"
			if value := median(f[c.figure][who.name]); !math.IsNaN(value) {
				cell = fmt.Sprintf("%.*f", c.digits, value)
			}
			row = append(row, cell)
		}
		fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
	}
	t.Flush()
}
