package rollout

import (
	"fmt"
	"io"
	"strconv"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// judge prints the claims of claims.txt about what was played, and whether each holds.
func (f *findings) judge(out io.Writer) error {
	broken := 0
	say := func(holds bool, format string, args ...any) {
		mark := "ok    "
		if !holds {
			mark = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, mark+"  "+format+"\n", args...)
	}
	for _, cells := range rows("claims.txt") {
		in, name, servers, kind, other := scene(cells[0]), cells[1], cells[2], cells[3], cells[5]
		is, than := f.part(in, name, servers), f.part(in, other, servers)
		if is.Stops == 0 || other != "" && than.Stops == 0 {
			continue
		}
		share, _ := strconv.ParseFloat(cells[4], 64)
		text, holds := is.judge(kind, share, than)
		if servers != "" {
			servers = ", " + servers
		}
		say(holds, "%s%s: %s %s%s", in, servers, name, kind, text)
	}
	f.judgeWatch(say)
	stalled := count(f.Trials, func(t *trial) bool { return t.Stalled })
	all := len(f.Trials)
	say(stalled*10 <= all, "the machine is quiet enough to tell: %d of %d rollouts left out", stalled, all)
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

// judge returns whether a claim holds, and the figures.
func (p *part) judge(kind string, share float64, than *part) (text string, holds bool) {
	failed := fmt.Sprintf(": %d of %d failed", p.Failed, p.requests)
	switch kind {
	case "loses at least":
		return fmt.Sprintf(" %v%s", share, failed), float64(p.Failed) >= share
	case "loses none":
		return failed, p.Failed == 0 && p.killed == 0
	case "cuts at most":
		return p.beside(than, share, p.kinds[load.Cut], than.kinds[load.Cut])
	case "loses at most":
		return p.beside(than, share, p.Failed, than.Failed)
	case "is gone within":
		is, longest := p.Median(), than.Median()
		return fmt.Sprintf(" %v of %s: %s of %s", share, than.Name, seconds(is), seconds(longest)), is <= share*longest
	}
	panic("no such claim: " + kind)
}

// beside compares the losses with a share of those of as many stops of another contender. Up to
// byChance requests are no proof: a short run has few stops.
func (p *part) beside(than *part, share float64, is, others int) (text string, holds bool) {
	const byChance = 2
	limit := share * float64(others) / float64(than.Stops) * float64(p.Stops)
	text = fmt.Sprintf(" %v times as many as %s, or %d: %d in %d stops, and %d in %d (failed in all: %d and %d)",
		share, than.Name, byChance, is, p.Stops, others, than.Stops, p.Failed, than.Failed)
	return text, float64(is) <= max(limit, byChance)
}
