package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// contradiction reports flags that contradict each other, whatever the grace period. A
// --kill-after that comes before the given schedule's last signal is refused. A preset's
// later steps may be cut short, since the user did not ask for each of them.
func (c *Config) contradiction() error {
	for _, port := range c.CountPorts {
		if slices.Contains(c.IgnorePorts, port) {
			return fault("ignore-port", fmt.Sprintf("leave port %d out of one of them", port),
				"%s and %s contradict each other", Flag("count-port", port), Flag("ignore-port", port))
		}
	}
	for _, m := range c.ExitCodes {
		if c.ExitCode(m.From, m.Stopped) != m.To {
			return fault("exit-code", "keep one", "%s: exit code %d is mapped twice", Flag("exit-code", m), m.From)
		}
	}
	step, at, cutOff := c.Schedule.CutOffBy(c.KillAfter)
	switch {
	case c.KillAfter > 0 && c.Schedule.Kills():
		return fault("kill-after", "keep one", "%s: KILL is given twice", c.GivenTimes())
	case c.KillAfter > 0 && cutOff:
		return fault("kill-after", "raise --kill-after, or put KILL into the schedule",
			"%s: KILL comes at %s and %v only at %s", c.GivenTimes(), c.KillAfter, step, at)
	case c.Schedule.LoopsWithoutWait():
		return fault("stop-schedule", "add a wait after forever, as in forever/TERM/5s",
			"%s repeats without a wait", Flag("stop-schedule", c.Schedule))
	case c.MaxDelay > 0 && c.longestGiven() > c.MaxDelay:
		return fault("max-delay", "raise it, or shorten the other",
			"%s: --max-delay is the longest hold", c.GivenTimes())
	}
	return nil
}

// misfit reports times that do not fit into a given grace period, and conditions that no time
// is left for.
func (p *Plan) misfit() error {
	gate, grace := p.Stop.Gate, p.Stop.Grace
	hasTime := gate.Ceiling > 0 || !gate.WaitGone && !gate.OnStop
	if hasTime && (p.AssumedFrom != "" || p.fits(grace)) {
		return nil
	}
	needed := p.longestGiven()
	if gate.Conditional() {
		needed = cmp.Or(needed, time.Second)
	}
	period := Flag("grace-period", grace)
	if p.AssumedFrom != "" {
		period = quote.InWords("the assumed grace period of %s", grace)
	}
	return fault(p.longestFlag(), quote.InWords("give less, or a grace period of %s", p.GraceFor(needed)),
		"%s does not fit into %s, which leaves %s for the hold", cmp.Or(p.GivenTimes(), "a hold"),
		period, max(p.ceiling(grace), 0).Truncate(100*time.Millisecond))
}
