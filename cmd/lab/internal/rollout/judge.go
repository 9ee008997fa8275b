package rollout

import (
	"fmt"
	"io"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// claim is a promise, and whether the promise holds.
type claim struct {
	text  string
	holds bool
}

const (
	// budget is the longest median stop with lameduck's defaults, as a share of safeSleep,
	// which is longer than the longest lag. A shorter sleep may lose no request by chance.
	budget = 0.6
	// keptBudget is the number of requests that a hold of lameduck with its defaults may cut
	// where clients never let go, as a share of the requests that a sleep of the same length
	// cuts. Up to byChance requests are no proof: a short run has few stops.
	keptBudget = 0.1
	byChance   = 2
)

// verdict prints the claims that a run can prove or break, and whether each holds.
func verdict(out io.Writer, f *findings) error {
	broken := 0
	for _, c := range judge(f) {
		mark := "ok    "
		if !c.holds {
			mark = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, "%s  %s\n", mark, c.text)
	}
	if broken > 0 {
		return fmt.Errorf("%d promises broken", broken)
	}
	return nil
}

func judge(f *findings) (all []claim) {
	for _, c := range contenders() {
		for _, s := range allScenes {
			if f.part(s, c.name, nil).stops > 0 {
				all = append(all, f.judge(s, &c)...)
			}
		}
	}
	stalled := count(f.Trials, func(t *trial) bool { return t.Stalled })
	return append(all, claim{
		fmt.Sprintf("the machine is quiet enough to tell: %d of %d rollouts left out", stalled, len(f.Trials)),
		stalled*10 <= len(f.Trials),
	})
}

// judge returns the claims about a contender in a scene. In sparse traffic any silence may
// lose requests, by design; only a floor as long as the lag of the balancer loses none.
func (f *findings) judge(in scene, c *contender) []claim {
	p := f.part(in, c.name, nil)
	switch {
	case in == demo:
		return f.judgeDemo(c, p)
	case in == anatomy:
		return []claim{none(in, c, p), f.Trials[0].Stops[0].sound()}
	case c.name == "bare":
		return []claim{{
			fmt.Sprintf("%s: without anything requests fail, or this would show nothing: %d failed", in, p.failed),
			p.failed > 0,
		}}
	case in == steady && c.name == defaultHold:
		return append(f.speed(), none(in, c, p))
	case in == steady && c.name == drainedHold, c.name == floored:
		return []claim{none(in, c, p)}
	case in == steady && c.name == shortHold:
		// A short silence soon takes the pool of a balancer that lets go late for clients that
		// never let go.
		return f.byConnection(c, time.Hour)
	case in == steady && c.name == settledHold:
		// New connections alone decide.
		return f.byConnection(c, defaultQuiet)
	case in == kept && c.name == defaultHold:
		// Of dying servers, the claim is about requests in work. A request that comes while the
		// server dies, some milliseconds in the laboratory, is reset at any moment of the
		// signal, and no claim is made about resets. A server that closes kept connections has
		// the same race.
		cut := func(p *part) int { return p.kinds[load.Cut] }
		failed := func(p *part) int { return p.failed }
		return append(f.beside(c, "dying", keptBudget, cut, dying), f.beside(c, "graceful", 1, failed, graceful)...)
	}
	return nil
}

func dying(s *server) bool    { return !s.has("closes") }
func graceful(s *server) bool { return s.has("closes") }

// none returns the claim that no request failed.
func none(in scene, c *contender, p *part) claim {
	return claim{fmt.Sprintf("%s: %s loses nothing: %d of %d failed", in, c.name, p.failed, p.requests), p.losesNone()}
}

// byConnection returns the claim about servers where each request has a connection and is
// shorter than longest.
func (f *findings) byConnection(c *contender, longest time.Duration) []claim {
	p := f.part(steady, c.name, func(s *server) bool { return !s.has("keep") && s.max < longest })
	return []claim{{fmt.Sprintf("steady: %s loses nothing where each request has its connection: %d of %d failed",
		c.name, p.failed, p.requests), p.failed == 0}}
}

// beside returns the claim that a hold loses at most a share of the requests that a sleep of
// the same length loses at as many stops of some servers.
func (f *findings) beside(c *contender, kind string, share float64,
	lost func(*part) int, of func(*server) bool) []claim {
	is, than := f.part(kept, c.name, of), f.part(kept, keptSleep, of)
	if is.stops == 0 || than.stops == 0 {
		return nil
	}
	limit := share * float64(lost(than)) / float64(than.stops) * float64(is.stops)
	text := fmt.Sprintf("kept: %s, %s servers: at most %v times what %s loses, or %d: %d in %d stops, and %d in %d",
		c.name, kind, share, keptSleep, byChance, lost(is), is.stops, lost(than), than.stops)
	text += fmt.Sprintf(" (failed in all: %d and %d)", is.failed, than.failed)
	return []claim{{text, float64(lost(is)) <= max(limit, byChance)}}
}

// speed compares the hold with lameduck's defaults with the shortest safe sleep.
func (f *findings) speed() []claim {
	hold, sleep := f.part(steady, defaultHold, nil), f.part(steady, safeSleep, nil)
	if sleep.stops == 0 {
		return nil
	}
	is, than := hold.median(), sleep.median()
	text := fmt.Sprintf("steady: %s takes at most %v times as long as %s, the shortest sleep longer than every lag: ",
		defaultHold, budget, safeSleep)
	text += fmt.Sprintf("%s of %s, %.2fx", seconds(is), seconds(than), is/than)
	return []claim{{text, is <= budget*than}}
}

// sound returns the claim that lameduck's report agrees with the balancer. A connection about
// the moment of the stop may count as one before it: some tens of milliseconds pass until the
// first sample on a busy machine.
func (s *stop) sound() claim {
	const nearby = 2
	came := 0
	for _, c := range s.Connections {
		if c.FromMS >= 0 {
			came++
		}
	}
	r := s.last()
	differ := max(came-r.Accepted, r.Accepted-came)
	text := fmt.Sprintf("anatomy: the report has the balancer's %d connections, %d more or less, one signal and an exit: %+v",
		came, nearby, r)
	return claim{text, differ <= nearby && len(r.Sent) == 1 && r.ExitCode != nil}
}

// judgeDemo returns the claims of the demo. The balancer sends by turns: half of the requests
// come to a replica that is gone, half a second more or less.
func (f *findings) judgeDemo(c *contender, p *part) []claim {
	if c.name == demoLong {
		return []claim{none(demo, c, p)}
	}
	if c.name == demoHold {
		is, than := p.median(), f.part(demo, demoLong, nil).median()
		return []claim{none(demo, c, p), {fmt.Sprintf("demo: %s is gone sooner than with %s: %s, %s",
			c.name, demoLong, seconds(is), seconds(than)), is < than}}
	}
	const tolerance = demoRate / 4
	want := int(demoRate * (demoLag - c.sleep) / time.Second / 2)
	return []claim{{fmt.Sprintf("demo: %s loses half of the requests of %.0f s: %d failed",
		c.name, (demoLag - c.sleep).Seconds(), p.failed),
		want-tolerance <= p.failed && p.failed <= want+tolerance}}
}
