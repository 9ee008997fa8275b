package cluster

import (
	"fmt"
	"io"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// judge prints the broken promises.
func judge(out io.Writer, rows []*row) error {
	broken := 0
	for _, r := range rows {
		if text := r.broken(rows); text != "" {
			fmt.Fprintf(out, "BROKEN  %s: %s\n", r, text)
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

// broken returns the promise that the row breaks, or "".
func (r *row) broken(rows []*row) string {
	failed := load.Failed(r.Tally.Kinds)
	silent := func(s stop) bool { return len(s.reports()) == 0 }
	toCeiling := func(s stop) bool {
		return slices.ContainsFunc(s.reports(), func(m []string) bool { return m[2] == "ceiling" })
	}
	switch {
	case r.Reason != "":
		return ""
	case r.stalled():
		return "the machine stood still in all tries"
	case len(r.Stops) == 0:
		return "nothing was stopped"
	case r.is("ours") && failed > r.allowed(rows):
		return fmt.Sprintf("%d requests failed, and %d may: %s", failed, r.allowed(rows), load.Summary(r.Tally.Kinds))
	case r.is("ours") && slices.ContainsFunc(r.Stops, silent):
		return "a pod's termination message has no hold"
	case r.is("quiet") && r.kept && slices.ContainsFunc(r.Stops, toCeiling):
		return "a hold lasted to the ceiling, although all clients keep their connections"
	case r.is("loses") && failed == 0:
		return "no request failed: the load does not see lost requests"
	}
	return ""
}

// allowed returns how many requests lameduck may lose: none, except where TERM kills the server and
// clients keep their connections, since no hold ends such traffic. There it may lose a tenth of what
// the fixed delay loses in as many rollouts, or byChance.
func (r *row) allowed(rows []*row) int {
	const tenth, byChance = 10, 2
	if !r.is("dies") || !r.kept {
		return 0
	}
	for _, fixed := range rows {
		if fixed.is("fixed") && fixed.kept && !fixed.stalled() {
			return max(load.Failed(fixed.Tally.Kinds)/tenth, byChance)
		}
	}
	return byChance
}
