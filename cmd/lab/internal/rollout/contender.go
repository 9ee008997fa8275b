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
	Name   string
	Words  []string      // before the server's
	Sleep  time.Duration // before TERM, as in a preStop hook
	Scenes []string
	Chart  []string // scenes
}

// oracle gets TERM at the moment of the removal.
const oracle = "oracle"

// claimed reports whether a claim for quick runs is about the contender with a server.
func (c *contender) claimed(s *server) bool {
	return slices.ContainsFunc(claims, func(about *claim) bool {
		return (about.Name == c.Name || about.Other == c.Name) &&
			about.Scene == s.Scene && s.is(about.Servers) && s.is(about.Quick)
	})
}

// holds reports whether the contender is lameduck.
func (c *contender) holds() bool { return len(c.Words) > 0 && c.Words[0] == "lameduck" }

// before returns the contender's words before the server's.
func (t *trial) before() []string {
	if !t.contender.holds() {
		return t.contender.Words
	}
	words := []string{"lameduck", "--grace-period=" + t.server.Grace.String()}
	if t.server.Graceful != syscall.SIGTERM {
		words = append(words, fmt.Sprintf("--rewrite=TERM:%d", int(t.server.Graceful)))
	}
	return slices.Concat(words, t.contender.Words[1:], []string{"--"})
}

// How describes the contender in a sentence.
func (t *trial) How() string {
	switch {
	case t.contender.holds():
		return fmt.Sprintf("TERM at once, to %s server", strings.Join(t.before(), " "))
	case t.contender.Sleep > 0:
		return fmt.Sprintf("TERM after a preStop sleep of %.0f s", t.contender.Sleep.Seconds())
	}
	return "TERM at once"
}
