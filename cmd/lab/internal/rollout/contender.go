package rollout

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
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
		all = append(all, &contender{cells[0], strings.Fields(cells[1]), plays.Duration(cells[2]), strings.Fields(cells[3]), strings.Fields(cells[4])})
	}
	return all
}

// claimed reports whether a claim for quick runs is about the contender with a server.
func (c *contender) claimed(s *server) bool {
	return slices.ContainsFunc(rows("claims.txt"), func(cells []string) bool {
		return cells[0] == s.scene && (cells[1] == c.name || cells[6] == c.name) && s.is(cells[2]) && s.is(cells[7])
	})
}

// holds reports whether the contender is lameduck.
func (c *contender) holds() bool { return len(c.words) > 0 && c.words[0] == "lameduck" }

// before returns the contender's words before the server's.
func (t *trial) before() []string {
	if !t.contender.holds() {
		return t.contender.words
	}
	words := []string{"lameduck", "--grace-period=" + t.server.grace.String()}
	if t.server.graceful != syscall.SIGTERM {
		words = append(words, fmt.Sprintf("--rewrite=TERM:%d", int(t.server.graceful)))
	}
	return slices.Concat(words, t.contender.words[1:], []string{"--"})
}

// How describes the contender in a sentence.
func (t *trial) How() string {
	switch {
	case t.contender.holds():
		return fmt.Sprintf("TERM at once, to %s server", strings.Join(t.before(), " "))
	case t.contender.sleep > 0:
		return fmt.Sprintf("TERM after a preStop sleep of %.0f s", t.contender.sleep.Seconds())
	}
	return "TERM at once"
}
