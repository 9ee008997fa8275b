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

// reserve is what is kept of the grace period for the command's own stop,
// unless a third of it is less.
const reserve = 10 * time.Second

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

// ceiling is the longest hold that leaves the command time to stop by itself
// within the grace period G: G - R - 1s, where R is 10 s or a third of G, with
// linger on top.
func ceiling(grace, linger time.Duration) time.Duration {
	return grace - min(reserve, grace/3) - linger - stop.Margin
}

// setGrace fits the hold and the linger into the grace period. One that was
// given is the law; over one that was assumed what was given wins, and it warns.
func (p *plan) setGrace(c *Config) error {
	grace := c.GracePeriod
	if p.assumed = grace == 0; p.assumed {
		grace = assumedGrace(c.Env)
	}
	p.stop.Grace = grace
	most := ceiling(grace, c.Linger)
	longest := max(c.Delay, c.MaxDelay, c.QuietFor)
	p.setGate(c, max(most, 0), longest <= most)
	g, asked := &p.stop.Gate, c.asked()
	switch {
	case c.MaxDelay > 0 && c.Delay > c.MaxDelay:
		return fmt.Errorf("--delay=%v is above --max-delay=%v: give a shorter delay, or a higher ceiling", c.Delay, c.MaxDelay)
	case c.MaxDelay > 0 && c.QuietFor > c.MaxDelay:
		return fmt.Errorf("--quiet-for=%v is above --max-delay=%v: give a shorter silence, or a higher ceiling", c.QuietFor, c.MaxDelay)
	case asked == "" || longest <= most:
		return nil
	case !p.assumed:
		return fmt.Errorf("%s does not fit into --grace-period=%v, which leaves %v for the hold: give less, or a grace period of %v",
			asked, grace, max(most, 0).Truncate(100*time.Millisecond), graceFor(longest, c.Linger))
	}
	hold := g.Floor
	if g.Until != Elapsed {
		hold = g.Ceiling
	}
	if left := grace - hold - c.Linger; left <= 0 {
		p.caveat = fmt.Sprintf("assumed grace period %v ends first: give --grace-period and docker stop -t", grace)
	} else {
		p.caveat = fmt.Sprintf("assumed grace period %v leaves the command %v to stop: give --grace-period and docker stop -t", grace, left)
	}
	p.warnings = append(p.warnings, fmt.Sprintf("%s: %s", asked, p.caveat))
	return nil
}

// setGate fills in what was not given; most is what the grace period leaves.
func (p *plan) setGate(c *Config, most time.Duration, fits bool) {
	g := stop.Gate{Floor: c.Delay, Until: c.Until, FloorGiven: c.DelayGiven, CeilingGiven: c.MaxDelay > 0}
	switch {
	case g.CeilingGiven:
		g.Ceiling = c.MaxDelay
	case fits:
		g.Ceiling = most
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
	}{{"delay", c.Delay}, {"quiet-for", c.QuietFor}, {"max-delay", c.MaxDelay}, {"linger", c.Linger}} {
		if given.value > 0 {
			list = append(list, fmt.Sprintf("--%s=%v", given.flag, given.value))
		}
	}
	return strings.Join(list, " with ")
}

// graceFor is the shortest grace period in whole seconds that a hold fits into:
// ceiling turned round.
func graceFor(hold, linger time.Duration) time.Duration {
	need := hold + linger + stop.Margin
	grace := min(need+need/2, need+reserve)
	return (grace + time.Second - 1).Truncate(time.Second)
}
