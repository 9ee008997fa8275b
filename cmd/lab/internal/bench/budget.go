package bench

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

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
	{"anonymous memory, idle", anon, goer, 2.2, 1.8},
	{"binary, stripped, kB", size, "", 5000, 5000},
	{"context switches a minute, idle", switches, "", 3, 1},
	{"signal latency", latency, tini, 1.8, 1.3},
	{"orphan storm, CPU time", storm, tini, 2, 1.3},
	{"a sample of 1 000 connections", sample1, ss, 0.4, 0.2},
	{"a sample of 10 000", sample10, ss, 0.4, 0.2},
	{"a sample of 50 000", sample50, ss, 0.4, 0.2},
	{"a hold of 10 s with 10 000, CPU time", hold, ss, 0.4, 0.2},
	{"short connections lost, at 10 000 a second", unseen, "", 0, 0},
}

const missed = "MISSED"

// printBudgets reports whether all budgets hold. A budget without figures counts as held.
func printBudgets(w io.Writer, f figures) (hold bool) {
	hold = true
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nwhat\treference\tfound\tspread\tover bare\tbudget\tgoal\tverdict")
	for _, b := range budgets {
		found := b.compare(f, 0, 1)
		verdict := b.verdict(found)
		hold = hold && verdict != missed
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%v\t%v\t%s\n", b.what, b.reference,
			b.format(found), b.spread(f), b.format(b.overBare(f)), b.most, b.aim, verdict)
	}
	t.Flush()
	fmt.Fprint(w, "\nspread: in each fifth of the run. over bare: after taking off the bare command's figure.\n")
	return hold
}

func (b budget) verdict(found float64) string {
	switch {
	case math.IsNaN(found):
		return "unjudged"
	case found <= b.aim:
		return "goal"
	case found <= b.most:
		return "budget"
	}
	return missed
}

// compare returns the median of the i-th of n parts of the samples, as a multiple of the
// reference's median. NaN means that the reference did not take part.
func (b budget) compare(f figures, i, n int) float64 {
	part := func(name string) float64 {
		samples := f[b.figure][name]
		return median(samples[len(samples)*i/n : len(samples)*(i+1)/n])
	}
	if b.reference == "" {
		return part(ours)
	}
	return part(ours) / part(b.reference)
}

// spread shows how steady the ratio was.
func (b budget) spread(f figures) string {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range 5 {
		found := b.compare(f, i, 5)
		low, high = min(low, found), max(high, found)
	}
	if math.IsNaN(low) {
		return ""
	}
	return b.format(low) + " - " + b.format(high)
}

// overBare compares the costs on top of the bare command's. NaN means that the bare
// command was not measured.
func (b budget) overBare(f figures) float64 {
	samples := f[b.figure]
	base := median(samples[bare])
	return (median(samples[ours]) - base) / (median(samples[b.reference]) - base)
}

func (b budget) format(value float64) string {
	switch {
	case math.IsNaN(value):
		return ""
	case b.reference == "":
		return fmt.Sprintf("%.4g", value)
	}
	return fmt.Sprintf("%.2f", value)
}
