package cluster

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// printTable prints the rows.
func printTable(out io.Writer, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nunder\tfailed per rollout\tof\tslow\tstop to exit\tmax\tload\tended by")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t", &r)
		if len(r.Stops) == 0 {
			fmt.Fprintf(t, "no stop: %s\n", r.Reason)
			continue
		}
		median, longest := r.took()
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f s\t%.1f s\t%.1f\t%s\n",
			strings.Trim(fmt.Sprint(r.Failed), "[]"), load.Ended(r.Tally.Kinds), r.Tally.Slow,
			median, longest, r.Tally.Load, r.remark())
	}
	t.Flush()
	fmt.Fprint(out, `
of: all requests. slow: answered after more than a second. stop to exit: the median of the
stops, as the API shows them, to the second. load: the node's highest load average.
`)
}

// remark tells why how many holds ended, and how requests failed.
func (r *row) remark() string {
	count, uncut := map[string]int{}, 0
	for _, s := range r.Stops {
		for _, m := range s.reports() {
			count[m[2]]++
			if strings.HasPrefix(m[1], "nothing in flight") {
				uncut++
			}
		}
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d %s", count[reason], reason))
	}
	if uncut > 0 {
		parts = append(parts, fmt.Sprintf("%d with nothing in flight", uncut))
	}
	text := strings.Join(parts, ", ")
	if failures := load.Summary(r.Tally.Kinds); failures != "" {
		text = strings.TrimPrefix(text+"; "+failures, "; ")
	}
	return text
}
