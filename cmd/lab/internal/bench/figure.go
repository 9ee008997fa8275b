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
	storm    figure = "storm ms"    // processor time of the init while it reaps orphans
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

// budget bounds a figure of lameduck, and names the goal: as multiples of the
// reference's figure, or as plain numbers without a reference.
type budget struct {
	what      string
	figure    figure
	reference string
	most, aim float64
}

// budgets is the table of promises.
var budgets = []budget{
	{"start-up, wall", wall, tini, 3.2, 2.8},
	{"page faults, start-up", faults, tini, 4.4, 3.3},
	{"start-up with 20 000 arguments", wallMany, tini, 3, 2},
	{"anonymous memory, idle, kB", anon, "", 1000, 800},
	{"binary, stripped, kB", size, "", 5000, 5000},
	{"context switches a minute, idle", switches, "", 3, 1},
	{"signal latency", latency, tini, 1.8, 1.3},
	{"orphan storm, CPU time", storm, tini, 2, 1.3},
	{"a hold of 10 s with 1 000 connections, CPU time", hold1, ss, 0.4, 0.2},
	{"with 10 000", hold10, ss, 0.4, 0.2},
	{"with 50 000", hold50, ss, 0.4, 0.2},
	{"short connections lost, at 10 000 a second", unseen, "", 0, 0},
}

// judge prints the ratios, and fails if a budget is missed. A budget without figures counts as
// held.
func (b *bench) judge() {
	missed := 0
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nwhat\treference\tfound\tbudget\tgoal\tverdict")
	for _, g := range budgets {
		found := b.median(g.figure, ours)
		if g.reference != "" {
			found /= b.median(g.figure, g.reference)
		}
		verdict := "MISSED"
		switch {
		case math.IsNaN(found):
			verdict = "unjudged"
		case found <= g.aim:
			verdict = "goal"
		case found <= g.most:
			verdict = "budget"
		default:
			missed++
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%v\t%s\n", g.what, g.reference, format(found), g.most, g.aim, verdict)
	}
	t.Flush()
	must.Be(missed == 0, "budgets missed: %d", missed)
}
