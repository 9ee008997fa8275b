package rollout

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// contender is one way to stop a server.
type contender struct {
	name   string
	init   string        // tini, lameduck, or none
	sleep  time.Duration // before TERM, as in a preStop hook
	oracle bool          // TERM is sent after the removal
	until  string        // lameduck's condition
	delay  time.Duration // lameduck's floor
	quiet  time.Duration // lameduck's --quiet-for; 0: the default
	quick  bool          // in a quick run too
	scenes []scene
}

// The names of contenders that claims are about. defaultHold is the hold with lameduck's
// defaults, shortHold ends after a short silence, and floored has a floor as long as the
// longest lag. safeSleep is the shortest sleep that is longer than every lag, slow requests
// included. keptSleep is as long as the default hold where clients never let go, if the
// ceiling of 19 s ends it: a longer sleep loses as many requests.
const (
	defaultHold = "lameduck --until=quiet"
	shortHold   = "lameduck --until=quiet --quiet-for=1s"
	settledHold = "lameduck --until=settled"
	drainedHold = "lameduck --until=drained"
	floored     = "lameduck --until=quiet --delay=10"
	safeSleep   = "sleep 14, then tini"
	keptSleep   = "sleep 20, then tini"

	demoShort = "sleep 2"
	demoLong  = "sleep 10"
	demoHold  = "lameduck"
)

// defaultQuiet is the default of --quiet-for.
const defaultQuiet = 4 * time.Second

func contenders() []contender {
	const s = time.Second
	rollouts := []scene{steady, kept, sparse}
	return []contender{
		{name: "bare", quick: true, scenes: []scene{steady, kept, sparse, demo}},
		{name: "tini", init: "tini", scenes: rollouts},
		{name: "sleep 5, then tini", init: "tini", sleep: 5 * s, scenes: rollouts},
		{name: "sleep 10, then tini", init: "tini", sleep: 10 * s, quick: true, scenes: []scene{steady, sparse}},
		{name: safeSleep, init: "tini", sleep: 14 * s, quick: true, scenes: []scene{steady}},
		{name: keptSleep, init: "tini", sleep: 20 * s, quick: true, scenes: []scene{kept}},
		{name: settledHold, init: "lameduck", until: "settled", quick: true, scenes: rollouts},
		{name: defaultHold, init: "lameduck", until: "quiet", quick: true, scenes: rollouts},
		{name: shortHold, init: "lameduck", until: "quiet", quiet: s, quick: true, scenes: rollouts},
		{name: drainedHold, init: "lameduck", until: "drained", quick: true, scenes: []scene{steady}},
		{name: floored, init: "lameduck", until: "quiet", delay: 10 * s, scenes: []scene{sparse}},
		{name: "oracle", init: "tini", oracle: true, scenes: []scene{steady}},

		{name: demoShort, sleep: 2 * s, scenes: []scene{demo}},
		{name: demoLong, sleep: 10 * s, scenes: []scene{demo}},
		{name: demoHold, init: "lameduck", until: "quiet", scenes: []scene{demo}},
		{name: "anatomy", init: "lameduck", until: "quiet", delay: 2 * s, scenes: []scene{anatomy}},
	}
}

// contenderOf returns a contender by name.
func contenderOf(name string) *contender {
	list := contenders()
	return &list[slices.IndexFunc(list, func(c contender) bool { return c.name == name })]
}

func (c *contender) plays(s scene) bool { return slices.Contains(c.scenes, s) }

// command returns the server's command line after the contender's init.
func (c *contender) command(o *options, s *server, words []string) []string {
	switch c.init {
	case "tini":
		return append([]string{"tini", "--"}, words...)
	case "lameduck":
		return slices.Concat([]string{o.lameduck, "--log-format=json"}, c.flags(o.scale, s), []string{"--"}, words)
	}
	return words
}

// flags returns lameduck's flags. Defaults are left out unless time is compressed.
func (c *contender) flags(by scale, s *server) []string {
	flags := []string{"--until=" + c.until, "--grace-period=" + s.gracePeriod().String()}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	if c.delay > 0 {
		flags = append(flags, "--delay="+by.of(c.delay).String())
	}
	quiet := c.quiet
	if by != 1 {
		quiet = by.of(c.silence())
		flags = append(flags, "--max-delay="+by.of(s.ceiling()).String())
	}
	if quiet > 0 {
		flags = append(flags, "--quiet-for="+quiet.String())
	}
	return flags
}

// silence returns the time of silence that ends the hold.
func (c *contender) silence() time.Duration {
	if c.quiet == 0 {
		return defaultQuiet
	}
	return c.quiet
}

// how describes the contender in a sentence.
func (c *contender) how(s *server) string {
	switch {
	case c.init == "lameduck":
		return "TERM at once, to lameduck " + strings.Join(c.flags(1, s), " ") + " -- server"
	case c.sleep > 0:
		return fmt.Sprintf("TERM after a preStop sleep of %v", c.sleep)
	}
	return "TERM at once"
}
