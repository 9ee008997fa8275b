package rollout

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// grace is what the orchestrator gives before it sends KILL, and ceiling what
// lameduck makes of it: the longest hold.
const (
	grace   = 30 * time.Second
	ceiling = 19 * time.Second
)

// contender is one way to stop a server.
type contender struct {
	name   string
	init   string        // tini, dumb-init, lameduck, or none
	sleep  time.Duration // before TERM, as a preStop would
	oracle bool          // TERM is sent when the removal has happened
	until  string        // what lameduck's hold ends by
	delay  time.Duration // its floor
	quiet  time.Duration // its --quiet-for
	quick  bool          // met in a quick run too
	hidden bool          // met only when named
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
				delay: 5 * time.Second, quiet: 3 * time.Second, quick: until == "quiet"},
			contender{name: "lameduck --until=" + until + short, init: "lameduck", until: until,
				quiet: time.Second, quick: true})
	}
	return append(list,
		contender{name: "oracle", init: "tini", oracle: true},
		contender{name: broken, init: "lameduck", until: "quiet", quiet: 10 * time.Millisecond, hidden: true})
}

// short marks the holds that go by silence alone; broken is a hold that ends at
// once, which the lab must find out.
const (
	short  = " --delay=0 --quiet-for=1s"
	broken = "broken: lameduck --until=quiet --delay=0 --quiet-for=10ms"
)

// command is the server's, with the contender's init before it.
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

// flags are lameduck's. What is a default is not said, but where time is
// compressed.
func (c *contender) flags(by scale, s *server) []string {
	flags := []string{"--grace-period=" + grace.String(), "--until=" + c.until}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	adaptive, defaults := c.until != "elapsed", c.delay > 0
	if !adaptive || !defaults || by != 1 {
		flags = append(flags, "--delay="+by.words(c.delay))
	}
	if adaptive && (!defaults || by != 1) {
		flags = append(flags, "--quiet-for="+by.words(c.quiet))
	}
	if adaptive && by != 1 {
		flags = append(flags, "--max-delay="+by.words(ceiling))
	}
	return append(flags, "--")
}

// stop does what this contender does at a stop: removed ends when the balancer
// has let go.
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
