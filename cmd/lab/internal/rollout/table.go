package rollout

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// printTables prints the results of each scene: first all, then failures and times by lag
// and by server.
func printTables(out io.Writer, f *findings) {
	fmt.Fprintf(out, "\nseed %d, scale %g, %d requests/s a rollout, %d rollouts a contender and server, %.0f s;", f.Seed, float64(f.Scale), f.Rate, f.Repeat, f.Seconds)
	fmt.Fprintf(out, " the machine stood still in %d rollouts, which were played again (%d of %d to no avail: left out)\n\n", f.Discarded, f.LeftOut, f.Rollouts)
	fmt.Fprintln(out, "losing: stops in which a request failed; most: in one of these. lost: long-lived connections that ended with the server. stop: from\nthe stop signal to the exit, over all servers but websocket, whose connections do not end by themselves.\nrollout: starts and stops of all replicas. ended by: lameduck's reasons for the ends of its holds.")
	for _, s := range f.Scenes {
		printScene(out, s, f.Lags)
	}
	fmt.Fprintln(out)
}

func printScene(out io.Writer, f *sceneFigures, lags []string) {
	fmt.Fprintf(out, "\n%s\n\n", f.Scene.title())
	t := newTable(out)
	t.row("contender", "requests", "failed", "refused", "reset", "cut", "5xx", "timeout", "lost", "losing", "of stops", "most", "stop: median", "p95", "max", "rollout", "added p99", "ended by")
	for _, c := range f.Contenders {
		k := c.All.Kinds
		t.row(c.Name, c.All.Requests, c.All.Failed, k[load.Refused], k[load.Reset], k[load.Cut], k[load.Status5], k[load.Timeout]+k[load.Unreachable]+k[load.Other], c.All.Lost, c.All.Losing, c.All.Stops, c.All.Most,
			seconds(c.All.MedianMS), seconds(c.All.P95MS), seconds(c.All.MaxMS), fmt.Sprintf("%.1f s", c.RolloutS), fmt.Sprintf("%.0f ms", c.ExtraMS), reasonsOf(c.All.Ended))
	}
	t.Flush()
	byLag, byServer := func(c *figures) map[string]*part { return c.ByLag }, func(c *figures) map[string]*part { return c.ByServer }
	printParts(out, f, "failed (lost), by lag", lags, byLag, failedOf)
	printParts(out, f, "failed (lost), by server", f.Servers, byServer, failedOf)
	printParts(out, f, "median stop, by lag", lags, byLag, timeOf)
	printParts(out, f, "median stop, by server", f.Servers, byServer, timeOf)
}

// reasonsOf lists the reasons for the ends of holds: "ceiling 12, kept 12".
func reasonsOf(ended map[string]int) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(ended)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, ended[reason]))
	}
	return strings.Join(parts, ", ")
}

func printParts(out io.Writer, f *sceneFigures, title string, columns []string, parts func(*figures) map[string]*part, text func(*part) string) {
	fmt.Fprintln(out)
	t := newTable(out)
	header := []any{title}
	for _, name := range columns {
		header = append(header, name)
	}
	t.row(header...)
	for _, c := range f.Contenders {
		row := []any{c.Name}
		for _, name := range columns {
			row = append(row, text(partOf(parts(c), name)))
		}
		t.row(row...)
	}
	t.Flush()
}

func failedOf(p *part) string {
	if p.Lost > 0 {
		return fmt.Sprintf("%d (%d)", p.Failed, p.Lost)
	}
	return fmt.Sprint(p.Failed)
}

func timeOf(p *part) string { return seconds(p.MedianMS) }

func seconds(ms float64) string { return fmt.Sprintf("%.1f s", ms/1000) }

// table aligns columns. The first column has words.
type table struct{ *tabwriter.Writer }

func newTable(out io.Writer) table {
	return table{tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)}
}

func (t table) row(cells ...any) {
	const words = 49 // the length of the longest contender's name
	fmt.Fprintf(t, "%-*s\t", words, cells[0])
	for _, c := range cells[1:] {
		fmt.Fprintf(t, "%s\t", strings.TrimSpace(fmt.Sprint(c)))
	}
	fmt.Fprintln(t)
}
