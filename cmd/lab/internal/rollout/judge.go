package rollout

import (
	"cmp"
	"fmt"
	"io"
)

// claim is a row of claims.txt.
type claim struct {
	Scene, Name, Servers, Figure, Bound string
	Number                              float64
	Other                               string // a contender to compare with
	Quick                               string // servers
}

// byChance requests are no proof of a share: a short run has few stops.
const byChance = 2

// judge prints the claims of claims.txt about what was played, and whether each holds.
func (f findings) judge(out io.Writer) error {
	broken := 0
	say := func(holds bool, format string, args ...any) {
		mark := "ok    "
		if !holds {
			mark = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, mark+"  "+format+"\n", args...)
	}
	for _, c := range claims {
		p, than := f.part(c.Scene, c.Name, c.Servers), f.part(c.Scene, c.Other, c.Servers)
		if p.Stops == 0 || c.Other != "" && than.Stops == 0 {
			continue
		}
		is, limit := p.figure(c.Figure), c.Number
		if c.Other != "" {
			limit *= than.figure(c.Figure)
			if c.Figure != "seconds" { // which is of one stop
				limit = max(limit*float64(p.Stops)/float64(than.Stops), byChance)
			}
		}
		holds := is <= limit
		if c.Bound == "at least" {
			holds = is >= limit
		}
		say(holds, "%s, %s: %s: %s %.3g, %s %.3g of %d requests in %d stops",
			c.Scene, cmp.Or(c.Servers, "all"), c.Name, c.Figure, is, c.Bound, limit, p.Requests, p.Stops)
	}
	f.judgeWatch(say)
	stalled := 0
	for _, t := range f {
		if t.Stalled {
			stalled++
		}
	}
	say(stalled*10 <= len(f), "the machine is quiet enough to tell: %d of %d rollouts left out", stalled, len(f))
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

// figure returns what a claim is about.
func (p *part) figure(name string) float64 {
	switch name {
	case "lost":
		return float64(p.Failed + p.killed)
	case "cut":
		return float64(p.cut)
	}
	return p.Median / 1000
}
