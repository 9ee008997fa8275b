package shim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// The arithmetic of the grace period: how long a hold may be, and must be.

// What a hold is like where nobody has said, unless half of its ceiling is less.
const (
	usualFloor      = 5 * time.Second // of an adaptive one
	usualQuiet      = 3 * time.Second // shorter than the usual gap between probes
	usualMaxSilence = 30 * time.Second
)

// usualReserve is what is kept of the grace period for the command's own stop,
// unless a third of it is less.
const usualReserve = 10 * time.Second

// assumedGrace is what the orchestrator probably gives where nobody has said.
func assumedGrace(env []string) time.Duration {
	switch {
	case has(env, "KUBERNETES_SERVICE_HOST"), has(env, "ECS_CONTAINER_METADATA_URI_V4"):
		return 30 * time.Second
	case has(env, "NOMAD_ALLOC_ID"):
		return 5 * time.Second
	}
	return 10 * time.Second
}

func has(env []string, name string) bool {
	return slices.ContainsFunc(env, func(entry string) bool {
		return len(entry) > len(name)+1 && entry[:len(name)+1] == name+"="
	})
}

// reserve is what is kept of the grace period for the command's own stop: the
// time to KILL where one was asked for, else 10 s or a third of it, but no less
// than the schedule takes.
func (c *Config) reserve(grace time.Duration) time.Duration {
	if kill, named := c.kill(); named {
		return kill
	}
	return max(min(usualReserve, grace/3), c.Schedule.TimeToLast())
}

// kill is the time from the first signal to KILL, where one was asked for.
func (c *Config) kill() (after time.Duration, named bool) {
	after, named = c.Schedule.TimeToKill()
	if c.KillAfter > 0 && (!named || c.KillAfter < after) {
		return c.KillAfter, true
	}
	return after, named
}

// checkKill refuses a --kill-after that ends the command before the given schedule
// has sent its signals. A preset's later steps may be cut short: the user did not
// ask for those one by one. The schedule's own KILL may come later too: the earlier
// of the two is sent.
func (c *Config) checkKill() error {
	step, at, found := c.Schedule.CutOffBy(c.KillAfter)
	if c.KillAfter == 0 || !found {
		return nil
	}
	enough := at.Truncate(time.Second) + time.Second
	return c.errorf("--kill-after=%v with --stop-schedule=%v: KILL comes at %v and %v only at %v: give --kill-after=%v or more, or put KILL into the schedule",
		c.KillAfter, c.Schedule, c.KillAfter, step, at, enough.Seconds())
}

// ceiling is the longest hold that leaves the command time to stop by itself
// within the grace period G: G - R - 1s, where R is the reserve, with linger on
// top, and what the schedule waits before its first signal.
func (c *Config) ceiling(grace time.Duration) time.Duration {
	return grace - c.Schedule.InitialWait() - c.reserve(grace) - c.Linger - stop.ReportMargin
}

// graceFor is the shortest grace period in whole seconds that a hold fits into:
// ceiling turned round.
func (c *Config) graceFor(hold time.Duration) time.Duration {
	grace := (hold + c.Schedule.InitialWait() + c.reserve(0) + c.Linger + stop.ReportMargin).Truncate(time.Second)
	for c.ceiling(grace) < hold {
		grace += time.Second
	}
	return grace
}

// setGrace fits the hold, the schedule and the linger into the grace period. One
// that was given is the law; over one that was assumed what was given wins, and it
// warns.
func (p *plan) setGrace(c *Config) error {
	grace := c.GracePeriod
	if p.assumed = grace == 0; p.assumed {
		grace = assumedGrace(c.Env)
	}
	p.stop.Grace = grace
	most := c.ceiling(grace)
	longest, asked, adaptive := max(c.Delay, c.MaxDelay, c.QuietFor), c.asked(), c.Until != Elapsed
	fits := longest <= most && (most > 0 || !adaptive) || asked == "" && !adaptive
	p.setGate(c, max(most, 0), fits)
	g := &p.stop.Gate
	switch {
	case c.MaxDelay > 0 && c.Delay > c.MaxDelay:
		return c.errorf("--delay=%v is above --max-delay=%v: give a shorter delay, or a higher ceiling", c.Delay, c.MaxDelay)
	case c.MaxDelay > 0 && c.QuietFor > c.MaxDelay:
		return c.errorf("--quiet-for=%v is above --max-delay=%v: give a shorter silence, or a higher ceiling", c.QuietFor, c.MaxDelay)
	case c.Schedule.LoopsWithoutWait():
		return c.errorf("--stop-schedule=%v repeats without a wait: give one after forever, as in forever/TERM/5s", c.Schedule)
	case g.Ceiling <= 0 && (g.WaitGone || g.OnStop):
		return c.errorf("%s leaves no time to hold, which --wait-gone and --on-stop need: give a grace period of %v or more, or --max-delay", cmp.Or(asked, "the grace period"), c.graceFor(time.Second))
	case fits:
		return nil
	case !p.assumed:
		return c.errorf("%s does not fit into --grace-period=%v, which leaves %v for the hold: give less, or a grace period of %v",
			cmp.Or(asked, c.Spelling.In("--until=")+string(c.Until)), grace, max(most, 0).Truncate(100*time.Millisecond), c.graceFor(cmp.Or(longest, leastHold(adaptive))))
	}
	hold := g.MaxHold()
	last, named := c.kill()
	if !named {
		last = c.Schedule.TimeToLast()
	}
	if left := grace - hold - c.Schedule.InitialWait() - c.Linger; left <= last {
		p.caveat = fmt.Sprintf(c.Spelling.In("assumed grace period %v ends first: give --grace-period and docker stop -t"), grace)
	} else {
		p.caveat = fmt.Sprintf(c.Spelling.In("assumed grace period %v leaves the command %v to stop: give --grace-period and docker stop -t"), grace, left)
	}
	p.warn("%s: %s", asked, p.caveat)
	return nil
}

// leastHold is what a hold should have that waits for traffic to stop.
func leastHold(adaptive bool) time.Duration {
	if adaptive {
		return time.Second
	}
	return 0
}

// setGate fills in what was not given; most is what the grace period leaves.
func (p *plan) setGate(c *Config, most time.Duration, fits bool) {
	g := stop.Gate{Floor: c.Delay, Until: c.Until, FloorGiven: c.DelayGiven, CeilingGiven: c.MaxDelay > 0,
		WaitGone: len(c.WaitGone) > 0, OnStop: len(c.OnStop) > 0}
	switch {
	case g.CeilingGiven:
		g.Ceiling = c.MaxDelay
	case fits, c.GracePeriod > 0:
		g.Ceiling = most
	case g.Until == Elapsed:
		g.Ceiling = c.Delay
	case c.DelayGiven:
		g.Ceiling = c.Delay + 2*cmp.Or(c.QuietFor, usualQuiet)
	default:
		g.Ceiling = usualFloor + 2*cmp.Or(c.QuietFor, usualQuiet)
	}
	half := g.Ceiling / 2
	if g.Until != Elapsed && !g.FloorGiven {
		g.Floor = min(usualFloor, half)
	}
	p.stop.Gate = g
	p.traffic.QuietFor = cmp.Or(c.QuietFor, min(usualQuiet, half))
	p.traffic.Poll = min(max(p.traffic.QuietFor/12, 10*time.Millisecond), time.Second)
	p.traffic.MaxSilence = cmp.Or(c.MaxSilence, min(usualMaxSilence, half))
}

// asked is what was asked for of the grace period, in words.
func (c *Config) asked() string {
	var list []string
	for _, given := range []struct {
		flag  string
		value time.Duration
	}{{"delay", c.Delay}, {"quiet-for", c.QuietFor}, {"max-delay", c.MaxDelay}, {"kill-after", c.KillAfter}, {"linger", c.Linger}} {
		if given.value > 0 {
			list = append(list, fmt.Sprintf("%s=%v", c.Spelling.In("--"+given.flag), given.value))
		}
	}
	switch {
	case len(c.Schedule) > 1 && c.Schedule[0].StopSignal: // a time alone
		list = append(list, fmt.Sprintf(c.Spelling.In("--stop-schedule=%v"), c.Schedule[1]))
	case c.Schedule != nil:
		list = append(list, fmt.Sprintf(c.Spelling.In("--stop-schedule=%v"), c.Schedule))
	}
	return strings.Join(list, " with ")
}
