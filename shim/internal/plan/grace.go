package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// The arithmetic of the grace period: how long a hold may be, and how long a grace period
// has to be for a hold.

// defaultReserve is the part of the grace period that is kept for the command's own stop,
// unless a third of the grace period is less.
const defaultReserve = 10 * time.Second

// fits reports whether the given times fit into a grace period.
func (c *Config) fits(grace time.Duration) bool {
	left, adaptive := c.ceiling(grace), c.Until != Elapsed
	return c.GivenTimes() == "" && !adaptive || c.longestGiven() <= left && (left > 0 || !adaptive)
}

// longestHold returns how long a hold may be. An assumed grace period yields to given times.
func (c *Config) longestHold(grace time.Duration, isAssumed bool) time.Duration {
	longest := max(c.ceiling(grace), 0)
	if isAssumed && !c.fits(grace) {
		longest = c.Delay
		if c.Until != Elapsed {
			longest += 2 * cmp.Or(c.QuietFor, defaultQuiet)
		}
	}
	return cmp.Or(c.MaxDelay, longest)
}

// assumedGrace returns the default grace period of the orchestrator that env gives away,
// and the orchestrator's name.
func assumedGrace(env []string) (grace time.Duration, orchestrator string) {
	grace, orchestrator = 10*time.Second, "Docker"
	for _, entry := range env {
		switch name, value, _ := strings.Cut(entry, "="); {
		case value == "":
		case name == "KUBERNETES_SERVICE_HOST":
			return 30 * time.Second, "Kubernetes"
		case name == "ECS_CONTAINER_METADATA_URI_V4":
			return 30 * time.Second, "ECS"
		case name == "NOMAD_ALLOC_ID":
			grace, orchestrator = 5*time.Second, "Nomad"
		}
	}
	return grace, orchestrator
}

// ceiling returns the longest hold after which the command still has time to stop within
// the grace period G: G - R - 1 s, less the linger and the schedule's wait before its first
// signal. R is kept for the command's own stop: the time to KILL if the configuration names a
// KILL, else 10 s or a third of the grace period, but no less than the schedule takes.
func (c *Config) ceiling(grace time.Duration) time.Duration {
	reserve, kills := c.Schedule.TimeToEnd(c.KillAfter)
	if !kills {
		reserve = max(min(defaultReserve, grace/3), reserve)
	}
	return grace - c.Schedule.InitialWait() - reserve - c.Linger - stop.ReportMargin
}

// GraceFor returns the shortest grace period, in whole seconds, whose ceiling is no
// shorter than a hold.
func (c *Config) GraceFor(hold time.Duration) time.Duration {
	grace := (hold - c.ceiling(0)).Truncate(time.Second)
	for c.ceiling(grace) < hold {
		grace += time.Second
	}
	return grace
}

// longestGiven returns the longest time that the configuration asks to hold.
func (c *Config) longestGiven() time.Duration { return max(c.Delay, c.MaxDelay, c.QuietFor) }

// longestFlag returns the flag of longestGiven, or that of the grace period.
func (c *Config) longestFlag() string {
	switch c.longestGiven() {
	case 0:
		return "grace-period"
	case c.Delay:
		return "delay"
	case c.MaxDelay:
		return "max-delay"
	}
	return "quiet-for"
}

// GivenTimes returns the flags that ask for a part of the grace period, "" if no flag does.
func (c *Config) GivenTimes() string {
	var flags []string
	for _, flag := range []struct {
		name  string
		value fmt.Stringer
	}{
		{"delay", c.Delay}, {"quiet-for", c.QuietFor}, {"max-delay", c.MaxDelay},
		{"kill-after", c.KillAfter}, {"linger", c.Linger}, {"stop-schedule", c.Schedule},
	} {
		if text := flag.value.String(); text != "" && text != "0s" {
			flags = append(flags, Flag(flag.name, flag.value))
		}
	}
	return strings.Join(flags, " with ")
}
