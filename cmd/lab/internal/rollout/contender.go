package rollout

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// grace is the orchestrator's grace period, and ceiling the longest hold that lameduck
// derives from the grace period.
const (
	grace   = 30 * time.Second
	ceiling = 19 * time.Second
)

// contender is one way to stop a server.
type contender struct {
	name   string
	init   string        // tini, dumb-init, lameduck, or none
	sleep  time.Duration // before TERM, as in a preStop hook
	oracle bool          // TERM is sent after the removal
	until  string        // lameduck's condition
	delay  time.Duration // lameduck's floor
	quiet  time.Duration // lameduck's --quiet-for
	quick  bool          // in a quick run too
	hidden bool          // only when named
}

func contenders() []contender {
	list := []contender{
		{name: "bare", quick: true},
		{name: "tini", init: "tini"},
		{name: "dumb-init --rewrite", init: "dumb-init"},
	}
	for _, n := range []int{1, 3, 5, 10, 14} {
		list = append(list, contender{name: fmt.Sprintf("sleep %d, then tini", n), init: "tini",
			sleep: time.Duration(n) * time.Second, quick: n >= 10})
	}
	list = append(list, contender{name: "lameduck --delay=5", init: "lameduck", until: "elapsed", delay: 5 * time.Second})
	for _, until := range []string{"settled", "quiet", "drained"} {
		list = append(list,
			contender{name: "lameduck --until=" + until, init: "lameduck", until: until,
				quiet: defaultQuiet, quick: until == "quiet"},
			contender{name: "lameduck --until=" + until + short, init: "lameduck", until: until,
				quiet: time.Second, quick: true})
	}
	return append(list,
		contender{name: "oracle", init: "tini", oracle: true},
		contender{name: broken, init: "lameduck", until: "quiet", quiet: 10 * time.Millisecond, hidden: true})
}

// defaultQuiet is the default of --quiet-for. short marks holds with a short silence, and
// broken is a hold that ends at once, which the experiment must detect.
const (
	defaultQuiet = 4 * time.Second
	short        = " --quiet-for=1s"
	broken       = "broken: lameduck --until=quiet --quiet-for=10ms"
)

// command returns the server's command line after the contender's init.
func (c *contender) command(o *options, s *server, words []string) []string {
	switch c.init {
	case "tini":
		return append([]string{"tini", "--"}, words...)
	case "dumb-init":
		rewrite := fmt.Sprintf("--rewrite=15:%d", int(s.graceful))
		return append([]string{"dumb-init", rewrite, "--"}, words...)
	case "lameduck":
		return append(append([]string{o.lameduck}, c.flags(o.scale, s)...), words...)
	}
	return words
}

// flags returns lameduck's flags. Defaults are left out unless time is compressed.
func (c *contender) flags(by scale, s *server) []string {
	flags := []string{"--grace-period=" + grace.String(), "--until=" + c.until}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	adaptive := c.until != "elapsed"
	if !adaptive {
		flags = append(flags, "--delay="+by.words(c.delay))
	}
	if adaptive && (c.quiet != defaultQuiet || by != 1) {
		flags = append(flags, "--quiet-for="+by.words(c.quiet))
	}
	if adaptive && by != 1 {
		flags = append(flags, "--max-delay="+by.words(ceiling))
	}
	return append(flags, "--")
}

// stop stops a process as the contender does. removed is closed when the balancer has
// removed the replica.
func (c *contender) stop(by scale, s *server, p *os.Process, gone, removed <-chan struct{}) {
	switch {
	case c.oracle:
		<-removed
		p.Signal(s.graceful)
		return
	case c.sleep > 0:
		select {
		case <-time.After(by.of(c.sleep)):
		case <-gone:
		}
	}
	p.Signal(syscall.SIGTERM)
}
