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
	chart  []string // scenes
}

// oracle gets TERM at the moment of the removal.
const oracle = "oracle"

var contenders = readContenders()

func readContenders() (all []*contender) {
	for _, cells := range rows("contenders.txt") {
		all = append(all, &contender{cells[0], strings.Fields(cells[1]), duration(cells[2]), strings.Fields(cells[3]), strings.Fields(cells[4])})
	}
	return all
}

// claimed reports whether a claim for quick runs is about the contender with a server.
func (c *contender) claimed(s *server) bool {
	return slices.ContainsFunc(rows("claims.txt"), func(cells []string) bool {
		return cells[0] == string(s.scene) && (cells[1] == c.name || cells[6] == c.name) && s.is(cells[2]) && s.is(cells[7])
	})
}

// holds reports whether the contender is lameduck.
func (c *contender) holds() bool { return len(c.words) > 0 && c.words[0] == "lameduck" }

// command returns the server's command line after the contender's words.
func (c *contender) command(o *options, s *server, words []string) []string {
	if c.holds() {
		return slices.Concat([]string{o.lameduck, "--log-format=json"}, c.flags(s), []string{"--"}, words)
	}
	return slices.Concat(c.words, words)
}

// flags returns lameduck's flags.
func (c *contender) flags(s *server) []string {
	flags := []string{"--grace-period=" + s.grace.String()}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	return append(flags, c.words[1:]...)
}

// How describes the contender in a sentence.
func (t *trial) How() string {
	switch {
	case t.contender.holds():
		return "TERM at once, to lameduck " + strings.Join(t.contender.flags(t.server), " ") + " -- server"
	case t.contender.sleep > 0:
		return fmt.Sprintf("TERM after a preStop sleep of %.0f s", t.contender.sleep.Seconds())
	}
	return "TERM at once"
}
