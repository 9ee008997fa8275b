package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printTable prints the rows.
func printTable(out io.Writer, rows []row) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nconnections\t\trequests\tfailed\tslow\tstop: median\tmax\tload\tended by")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t", r.connections(), r.name)
		if r.reason != "" {
			fmt.Fprintf(t, "skipped: %s\n", r.reason)
			continue
		}
		median, longest := r.took()
		fmt.Fprintf(t, "%d\t%d\t%d\t%.1f s\t%.1f s\t%.1f\t%s\n", r.tally.Ended(), r.tally.Failed(), r.tally.Slow,
			median.Seconds(), longest.Seconds(), r.tally.Load, r.remark())
	}
	t.Flush()
	fmt.Fprintln(out, "\nslow: answered after more than a second. stop: as the API shows it, up to a second late.\nload: the node's highest load average of a minute.")
}

// remark tells why the holds ended, and how requests failed.
func (r *row) remark() string {
	var parts []string
	for _, s := range r.stops {
		parts = append(parts, s.ended()...)
	}
	slices.Sort(parts)
	parts = slices.Compact(parts)
	if failures := r.tally.Summary(); failures != "" {
		parts = append(parts, failures)
	}
	return strings.Join(parts, "; ")
}

// judge prints the broken promises.
func judge(out io.Writer, rows []row) error {
	broken := 0
	for _, r := range rows {
		if text := r.broken(); text != "" {
			fmt.Fprintf(out, "BROKEN  %s: %s\n", r.name, text)
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

// broken returns the promise that a row breaks, or "".
func (r *row) broken() string {
	switch failed := r.tally.Failed(); {
	case r.reason != "":
		return ""
	case r.stalled():
		return "the machine stood still in all tries"
	case len(r.stops) == 0:
		return "nothing was stopped"
	case r.ours && failed > 0:
		return fmt.Sprintf("%d requests failed: %s", failed, r.tally.Summary())
	case r.ours && slices.ContainsFunc(r.stops, func(s stop) bool { return len(s.ended()) == 0 }):
		return "a pod's termination message has no hold"
	case r.loses && failed == 0:
		return "no request failed: the load does not see lost requests"
	}
	return ""
}
