package rollout

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
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
	scenes []scene       // nil: steady alone
}

func contenders() []contender {
	list := []contender{
		{name: "bare", quick: true, scenes: allScenes},
		{name: "tini", init: "tini", scenes: allScenes},
		{name: "dumb-init --rewrite", init: "dumb-init"},
	}
	for _, n := range []int{3, 5, 10, 14, keptSleep} {
		list = append(list, contender{name: sleepFor(n), init: "tini", sleep: time.Duration(n) * time.Second,
			quick: n >= 10, scenes: scenesOfSleep(n)})
	}
	list = append(list, contender{name: "lameduck --delay=5", init: "lameduck", until: "elapsed", delay: 5 * time.Second,
		scenes: []scene{steady, kept}})
	for _, until := range []string{"settled", "quiet", "drained"} {
		list = append(list,
			contender{name: "lameduck --until=" + until, init: "lameduck", until: until,
				quiet: defaultQuiet, quick: until != "settled", scenes: scenesOfHold(until)})
		if until != "drained" {
			list = append(list, contender{name: "lameduck --until=" + until + short, init: "lameduck", until: until,
				quiet: time.Second, quick: true, scenes: scenesOfHold(until)})
		}
	}
	return append(list,
		contender{name: floored, init: "lameduck", until: "quiet", quiet: defaultQuiet, delay: 10 * time.Second,
			scenes: []scene{sparse}},
		contender{name: "oracle", init: "tini", oracle: true},
		contender{name: broken, init: "lameduck", until: "quiet", quiet: 10 * time.Millisecond, hidden: true})
}

func sleepFor(seconds int) string { return fmt.Sprintf("sleep %d, then tini", seconds) }

// keptSleep is the sleep, in seconds, that is as long as the hold with lameduck's defaults
// where clients never let go, if the ceiling of 19 s ends it. A longer sleep loses as many
// requests: such clients go on until the end.
const keptSleep = 20

// scenesOfSleep returns where a sleep of n seconds tells something: where traffic is kept,
// beside holds of the same length.
func scenesOfSleep(n int) []scene {
	switch n {
	case 5:
		return allScenes
	case 10:
		return []scene{steady, sparse}
	case keptSleep:
		return []scene{kept}
	}
	return nil
}

// scenesOfHold leaves out drained where no connection is ever closed, or every request has
// a connection.
func scenesOfHold(until string) []scene {
	if until == "drained" {
		return nil
	}
	return allScenes
}

// named reports whether a word of the command line selects the contender: a name, or a part
// of names. A whole name selects no other, and a hidden contender is selected by no part.
func (c *contender) named(word string) bool {
	isName := slices.ContainsFunc(contenders(), func(other contender) bool { return other.name == word })
	if isName || c.hidden {
		return c.name == word
	}
	return strings.Contains(c.name, word)
}

// plays reports whether the contender plays in a scene.
func (c *contender) plays(s scene) bool {
	return slices.Contains(c.scenes, s) || c.scenes == nil && s == steady
}

// defaultQuiet is the default of --quiet-for. defaultHold is the hold with lameduck's
// defaults, of which the README's headline is. short marks holds with a short silence,
// floored is a hold with a floor as long as the longest lag, and broken is a hold that ends
// at once, which the experiment must detect.
const (
	defaultQuiet = 4 * time.Second
	short        = " --quiet-for=1s"
	defaultHold  = "lameduck --until=quiet"
	floored      = "lameduck --until=quiet --delay=10"
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
		return append(append([]string{o.lameduck, "--log-format=json"}, c.flags(o.scale, s)...), words...)
	}
	return words
}

// flags returns lameduck's flags. Defaults are left out unless time is compressed.
func (c *contender) flags(by scale, s *server) []string {
	flags := []string{"--grace-period=" + s.gracePeriod().String(), "--until=" + c.until}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	adaptive := c.until != "elapsed"
	if c.delay > 0 {
		flags = append(flags, "--delay="+by.words(c.delay))
	}
	if adaptive && (c.quiet != defaultQuiet || by != 1) {
		flags = append(flags, "--quiet-for="+by.words(c.quiet))
	}
	if adaptive && by != 1 {
		flags = append(flags, "--max-delay="+by.words(s.ceiling()))
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
