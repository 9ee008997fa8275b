package rollout

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// claim is a promise, and whether the promise holds.
type claim struct {
	text  string
	holds bool
}

// judge returns the claims that a run can prove or break.
func judge(f *findings) []claim {
	var all []claim
	for _, s := range f.Scenes {
		switch s.Scene {
		case steady:
			all = append(all, s.judgeSteady()...)
		case kept:
			all = append(all, s.judgeKept()...)
		case sparse:
			all = append(all, s.judgeSparse()...)
		}
	}
	return append(all, claim{fmt.Sprintf("the machine is quiet enough to tell: %d of %d rollouts left out", f.LeftOut, f.Rollouts), f.LeftOut*10 <= f.Rollouts})
}

func (f *sceneFigures) judgeSteady() []claim {
	var all []claim
	for _, c := range f.Contenders {
		switch {
		case c.Name == "bare":
			all = append(all, f.loses(c))
		case c.Name == defaultHold+short:
			all = append(all, f.byConnection(c, math.MaxInt64))
		case strings.Contains(c.Name, "--until=quiet"), strings.Contains(c.Name, "--until=drained"):
			all = append(all, claim{fmt.Sprintf("%s loses nothing: %d of %d failed", c.Name, c.All.Failed, c.All.Requests), c.All.Failed == 0 && c.All.Killed == 0})
		case strings.Contains(c.Name, "--until=settled"):
			all = append(all, f.byConnection(c, contenderOf(c.Name).quiet))
		}
	}
	if c, ok := f.speed(); ok {
		all = append(all, c)
	}
	return all
}

// loses returns the claim that the load can fail.
func (f *sceneFigures) loses(c *figures) claim {
	return claim{fmt.Sprintf("%s: without anything requests fail, or this would show nothing: %d failed", f.Scene, c.All.Failed), c.All.Failed > 0}
}

// judgeSparse returns the claims about sparse traffic. Any silence may lose requests,
// by design; only a floor as long as the lag of the balancer loses no request.
func (f *sceneFigures) judgeSparse() (all []claim) {
	for _, c := range f.Contenders {
		switch c.Name {
		case "bare":
			all = append(all, f.loses(c))
		case floored:
			all = append(all, claim{fmt.Sprintf("%s: %s loses nothing: %d of %d failed", f.Scene, c.Name, c.All.Failed, c.All.Requests), c.All.Failed == 0 && c.All.Killed == 0})
		}
	}
	return all
}

// keptBudget is the number of requests that a hold of lameduck with its defaults may cut
// where clients never let go, as a share of the requests that a sleep of the same length
// cuts. Up to byChance requests are no proof: a short run has few stops.
const (
	keptBudget = 0.1
	byChance   = 2
)

// judgeKept returns the claims about clients that never let go. Of dying servers, the claim
// is about requests in work. A request that comes while the server dies, some milliseconds
// in the laboratory, is reset at any moment of the signal, and no claim is made about
// resets. A server that closes kept connections has the same race.
func (f *sceneFigures) judgeKept() (all []claim) {
	sleep := f.find(sleepFor(keptSleep))
	for _, c := range f.Contenders {
		switch {
		case c.Name == "bare":
			all = append(all, f.loses(c))
		case c.Name == defaultHold && sleep != nil:
			all = append(all, f.keptClaim(c, sleep, "dying", keptBudget, part.cut, func(s *server) bool { return !s.closesKept })...)
			all = append(all, f.keptClaim(c, sleep, "graceful", 1, part.failed, func(s *server) bool { return s.closesKept })...)
		}
	}
	return all
}

// cut returns the requests in work when the server ended.
func (p part) cut() int { return p.Kinds[load.Cut] }

func (p part) failed() int { return p.Failed }

// keptClaim returns the claim that c loses at most a share of the requests that a sleep
// loses at as many stops of some servers.
func (f *sceneFigures) keptClaim(c, sleep *figures, kind string, share float64, lost func(part) int, of func(*server) bool) []claim {
	is, than := c.partOf(of), sleep.partOf(of)
	if is.Stops == 0 || than.Stops == 0 {
		return nil
	}
	limit := share * float64(lost(than)) / float64(than.Stops) * float64(is.Stops)
	return []claim{{fmt.Sprintf("%s: %s, %s servers: at most %v times what %s loses, or %d: %d in %d stops, and %d in %d (failed in all: %d and %d)",
		f.Scene, c.Name, kind, share, sleep.Name, byChance, lost(is), is.Stops, lost(than), than.Stops, is.Failed, than.Failed),
		float64(lost(is)) <= max(limit, byChance)}}
}

// partOf sums up the stops of some servers.
func (c *figures) partOf(of func(*server) bool) (sum part) {
	sum.Kinds = map[load.Kind]int{}
	for _, s := range allServers() {
		if p := c.ByServer[s.name]; p != nil && of(&s) {
			sum.Stops += p.Stops
			sum.Failed += p.Failed
			for kind, n := range p.Kinds {
				sum.Kinds[kind] += n
			}
		}
	}
	return sum
}

// find returns the figures of a contender, or nil.
func (f *sceneFigures) find(name string) *figures {
	i := slices.IndexFunc(f.Contenders, func(c *figures) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return f.Contenders[i]
}

// byConnection returns the claim about servers where each request has a connection and is
// shorter than longest. For --until=settled new connections alone decide. With a short
// silence --until=quiet soon takes the pool of a balancer that lets go late for clients that
// never let go.
func (f *sceneFigures) byConnection(c *figures, longest time.Duration) claim {
	var names []string
	failed := 0
	for _, s := range allServers() {
		if p := c.ByServer[s.name]; p != nil && s.scene == steady && !s.keepAlive && s.max < longest {
			names = append(names, s.name)
			failed += p.Failed
		}
	}
	return claim{fmt.Sprintf("%s loses nothing where each request has its connection (%s): %d failed",
		c.Name, strings.Join(names, ", "), failed), failed == 0}
}

func contenderOf(name string) contender {
	list := contenders()
	return list[slices.IndexFunc(list, func(c contender) bool { return c.name == name })]
}

// budget is the longest median stop with lameduck's defaults, as a share of the shortest
// sleep that loses no request.
const budget = 0.6

// speed compares the hold with lameduck's defaults with the shortest sleep that loses no
// request at any lag.
func (f *sceneFigures) speed() (claim, bool) {
	plain, sleep := f.find(defaultHold), f.shortestSleep()
	if plain == nil || sleep == nil {
		return claim{}, false
	}
	is, than := plain.All.MedianMS, sleep.All.MedianMS
	return claim{fmt.Sprintf("%s takes at most %v times as long as the shortest sleep that loses nothing either (%s): %.1f s of %.1f s, %.2fx",
		plain.Name, budget, sleep.Name, is/1000, than/1000, is/than), is <= budget*than}, true
}

// shortestSleep returns the shortest sleep that loses no request, or the longest sleep: a
// lossless sleep would be longer still. A sleep of longestLag or less may lose no
// request by chance, since few stops meet so long a lag, and is left out.
func (f *sceneFigures) shortestSleep() (found *figures) {
	least, longest := math.Inf(1), 0.0
	for _, c := range f.Contenders {
		if !strings.HasPrefix(c.Name, "sleep ") || contenderOf(c.Name).sleep <= longestLag {
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
