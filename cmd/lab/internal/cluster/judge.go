package cluster

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// tenth is the share of the fixed delay's lost requests that lameduck may lose where TERM
// kills the server and clients keep their connections: no hold ends such traffic.
const tenth = 10

// chance is the probability below which losses are no chance.
const chance = 0.05

// judge prints the broken promises, and the promises that too few losses leave undecided.
func judge(out io.Writer, rows []row) error {
	broken := 0
	for i := range rows {
		r := &rows[i]
		text, undecided := r.broken(), ""
		if text == "" && r.shares() {
			text, undecided = r.beside(fixedOf(rows))
		}
		if text != "" {
			fmt.Fprintf(out, "BROKEN  %s: %s\n", r, text)
			broken++
		}
		if undecided != "" {
			fmt.Fprintf(out, "undecided  %s: %s\n", r, undecided)
		}
	}
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

// shares reports whether the row may lose a tenth of what the fixed delay loses. In every
// other row lameduck may lose no request.
func (r *row) shares() bool { return r.is("ours") && r.is("dies") && r.kept && r.Reason == "" }

// broken returns the promise broken by the row alone, or "".
func (r *row) broken() string {
	switch failed := load.Failed(r.Tally.Kinds); {
	case r.Reason != "":
		return ""
	case r.stalled():
		return "the machine stood still in all tries"
	case len(r.Stops) == 0:
		return "nothing was stopped"
	case r.is("ours") && !r.shares() && failed > 0:
		return fmt.Sprintf("%d requests failed: %s", failed, load.Summary(r.Tally.Kinds))
	case r.is("ours") && slices.ContainsFunc(r.Stops, func(s stop) bool { return len(s.reports()) == 0 }):
		return "a pod's termination message has no hold"
	case r.is("quiet") && r.kept && slices.ContainsFunc(r.Stops, stop.toCeiling):
		return "a hold lasted to the ceiling, although all clients keep their connections"
	case r.is("loses") && failed == 0:
		return "no request failed: the load does not see lost requests"
	}
	return ""
}

// toCeiling reports whether a container held to the ceiling.
func (s stop) toCeiling() bool {
	return slices.ContainsFunc(s.reports(), func(m []string) bool { return m[2] == "ceiling" })
}

// fixedOf returns the row of the fixed delay before a server that TERM kills, under the
// load that keeps its connections, or nil.
func fixedOf(rows []row) *row {
	i := slices.IndexFunc(rows, func(r row) bool { return r.is("fixed") && r.kept && !r.stalled() })
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// beside compares the sums of all rollouts with those of the fixed delay. The promise is
// broken if so many losses are improbable for a row that loses a tenth, and undecided if
// the row loses more than a tenth all the same, or if the delay lost fewer than ten
// requests: a tenth is less than one request.
func (r *row) beside(fixed *row) (broken, undecided string) {
	lost := load.Failed(r.Tally.Kinds)
	if fixed == nil || len(fixed.Stops) != len(r.Stops) {
		return "", fmt.Sprintf("%d requests failed; no fixed delay was played for comparison", lost)
	}
	most := load.Failed(fixed.Tally.Kinds)
	text := fmt.Sprintf("%d requests failed, and %d under %q", lost, most, fixed.name)
	switch {
	case atLeast(lost, lost+most, 1.0/(tenth+1)) < chance:
		return text + ", of which a tenth is allowed", ""
	case most < tenth || lost*tenth > most:
		return "", text + ": too few to tell whether a tenth, give more -rollouts"
	}
	return "", ""
}

// atLeast returns the probability of k or more successes in n trials with a
// probability of success of p each.
func atLeast(k, n int, p float64) float64 {
	sum, term := 0.0, math.Pow(1-p, float64(n))
	for i := range k {
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return 1 - sum
}
