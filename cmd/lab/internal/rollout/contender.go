package rollout

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// contender is one way to stop a server: a row of contenders.txt.
type contender struct {
	name   string
	words  []string      // before the server's
	sleep  time.Duration // before TERM, as in a preStop hook
	scenes []string
}

// The names of contenders that the code is about: lameduck's defaults, which the chart marks, and
// the oracle.
const (
	defaultHold = "lameduck --until=quiet"
	oracle      = "oracle"
)

var contenders = readContenders()

func readContenders() (all []*contender) {
	for _, cells := range rows("contenders.txt") {
		all = append(all, &contender{cells[0], strings.Fields(cells[1]), duration(cells[2]), strings.Fields(cells[3])})
	}
	return all
}

// charted reports whether the contender is in the chart of a scene.
func (c *contender) charted(s scene) bool { return slices.Contains(c.scenes, string(s)+"*") }

func (c *contender) plays(s scene) bool { return slices.Contains(c.scenes, string(s)) || c.charted(s) }

// holds reports whether the contender is lameduck.
func (c *contender) holds() bool { return len(c.words) > 0 && c.words[0] == "lameduck" }

// command returns the server's command line after the contender's words.
func (c *contender) command(o *options, s *server, words []string) []string {
	if c.holds() {
		return slices.Concat([]string{o.lameduck, "--log-format=json"}, c.flags(o.scale, s), []string{"--"}, words)
	}
	return slices.Concat(c.words, words)
}

// flags returns lameduck's flags. Defaults are left out unless time is compressed: the longest hold
// leaves 10 s of the grace period to the server, and 1 s to the report.
func (c *contender) flags(by scale, s *server) []string {
	flags := []string{"--grace-period=" + s.grace.String()}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	words := c.words[1:]
	if by != 1 {
		words = append([]string{"--max-delay=" + (s.grace - 11*time.Second).String(), "--quiet-for=4s"}, words...)
	}
	for _, word := range words {
		flag, value, _ := strings.Cut(word, "=")
		if d, err := time.ParseDuration(value); err == nil {
			word = flag + "=" + by.of(d).String()
		}
		flags = append(flags, word)
	}
	return flags
}

// how describes the contender in a sentence.
func (c *contender) how(s *server) string {
	switch {
	case c.holds():
		return "TERM at once, to lameduck " + strings.Join(c.flags(1, s), " ") + " -- server"
	case c.sleep > 0:
		return fmt.Sprintf("TERM after a preStop sleep of %.0f s", c.sleep.Seconds())
	}
	return "TERM at once"
}
