package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/report"
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
	mapped := map[preset.ExitCode]bool{}
	for _, m := range c.ExitCodes {
		key := preset.ExitCode{From: m.From, Stopped: m.Stopped}
		if mapped[key] {
			return fault("exit-code", "keep one", "%s: exit code %d is mapped twice", Flag("exit-code", m), m.From)
		}
		mapped[key] = true
	}
	step, at, cutOff := c.Schedule.CutOffBy(c.KillAfter)
	switch {
	case c.KillAfter > 0 && c.Schedule.Kills():
		return fault("kill-after", "keep one", "%s: KILL is given twice", c.givenKills())
	case c.KillAfter > 0 && cutOff:
		return fault("kill-after", "raise --kill-after, or put KILL into the schedule",
			"%s: KILL comes at %s and %v only at %s", c.givenKills(), c.KillAfter, step, at)
	case c.Schedule.LoopsWithoutWait():
		return fault("stop-schedule", "add a wait after forever, as in forever/TERM/5s",
			"%s repeats without a wait", c.flag("stop-schedule", c.Schedule))
	case c.MaxDelay > 0 && c.longestGiven() > c.MaxDelay:
		return fault("max-delay", "raise it, or shorten the other",
			"%s: --max-delay is the longest hold", c.givenTimes())
	}
	return nil
}

// givenKills spells the two flags that name the time of KILL.
func (c *Config) givenKills() string {
	return c.flag("kill-after", c.KillAfter) + " with " + c.flag("stop-schedule", c.Schedule)
}

// misfit reports times that do not fit into a given grace period, and conditions that no time
// is left for.
func (c *Config) misfit(f fit) error {
	switch {
	case f.ceiling <= 0 && (len(c.WaitGone) > 0 || c.WaitURL != nil || c.OnStop.Runs()):
		remedy := report.InWords("give a grace period of %s or more, or --max-delay (LAMEDUCK_MAX_DELAY)",
			c.graceFor(time.Second))
		return fault("grace-period", remedy, "%s leaves no time for the hold that --wait-gone "+
			"(LAMEDUCK_WAIT_GONE), --wait-url (LAMEDUCK_WAIT_URL) and --on-stop (LAMEDUCK_ON_STOP) need",
			cmp.Or(c.givenTimes(), "the grace period"))
	case f.fits || f.assumedFrom != "":
		return nil
	}
	needed := c.longestGiven()
	if c.Until != Elapsed {
		needed = cmp.Or(needed, time.Second)
	}
	return fault(c.longestFlag(), report.InWords("give less, or a grace period of %s", c.graceFor(needed)),
		"%s does not fit into %s, which leaves %s for the hold", cmp.Or(c.givenTimes(), c.flag("until", c.Until)),
		c.flag("grace-period", c.GracePeriod), f.left.Truncate(100*time.Millisecond))
}
