package rollout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// claim is a promise, and whether the promise holds.
type claim struct {
	text  string
	holds bool
}

// judge returns the claims about which a run can tell.
func judge(f *findings) []claim {
	var all []claim
	for _, c := range f.Contenders {
		switch {
		case c.Name == "bare":
			all = append(all, claim{fmt.Sprintf("without anything requests fail, or this would show nothing: %d failed", c.All.Failed), c.All.Failed > 0})
		case strings.Contains(c.Name, "--until=quiet"), strings.Contains(c.Name, "--until=drained"):
			all = append(all, claim{fmt.Sprintf("%s loses nothing: %d of %d failed", c.Name, c.All.Failed, c.All.Requests), c.All.Failed == 0 && c.All.Killed == 0})
		case strings.Contains(c.Name, "--until=settled"):
			all = append(all, f.settled(c))
		}
	}
	all = append(all, claim{fmt.Sprintf("the machine is quiet enough to tell: %d of %d rollouts left out", f.LeftOut, f.Rollouts), f.LeftOut*10 <= f.Rollouts})
	if c, ok := f.speed(); ok {
		all = append(all, c)
	}
	return all
}

// settled returns the claim about --until=settled. New connections alone decide there, so
// the claim covers servers where each request has a connection and is shorter than the
// silence.
func (f *findings) settled(c *figures) claim {
	var names []string
	failed, longest := 0, quietOf(c.Name)
	for _, s := range allServers() {
		if p := c.ByServer[s.name]; p != nil && !s.keepAlive && s.max < longest {
			names = append(names, s.name)
			failed += p.Failed
		}
	}
	return claim{fmt.Sprintf("%s loses nothing where each short request has its connection (%s): %d failed",
		c.Name, strings.Join(names, ", "), failed), failed == 0}
}

func quietOf(name string) time.Duration {
	list := contenders()
	return list[slices.IndexFunc(list, func(c contender) bool { return c.name == name })].quiet
}

// budget is the longest median stop with lameduck's defaults, as a share of the shortest
// sleep that loses no request.
const budget = 0.6

// speed compares the hold with lameduck's defaults with the shortest sleep that loses no
// request.
func (f *findings) speed() (claim, bool) {
	plain := slices.IndexFunc(f.Contenders, func(c *figures) bool { return c.Name == "lameduck --until=quiet" })
	sleep := f.shortestSleep()
	if plain < 0 || sleep == nil {
		return claim{}, false
	}
	is, than := f.Contenders[plain].All.MedianMS, sleep.All.MedianMS
	return claim{fmt.Sprintf("%s takes at most %v times as long as the shortest sleep that loses nothing either (%s): %.1f s of %.1f s, %.2fx",
		f.Contenders[plain].Name, budget, sleep.Name, is/1000, than/1000, is/than), is <= budget*than}, true
}

// shortestSleep returns the shortest sleep that loses no request, or the longest sleep: a
// sleep that loses none would be longer still.
func (f *findings) shortestSleep() (found *figures) {
	least, longest := math.Inf(1), 0.0
	for _, c := range f.Contenders {
		if !strings.HasPrefix(c.Name, "sleep ") {
			continue
		}
		t := c.All.MedianMS
		if c.All.Failed == 0 && t < least {
			least, found = t, c
		}
		if math.IsInf(least, 1) && t > longest {
			longest, found = t, c
		}
	}
	return found
}
