package rollout

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed rows
var files embed.FS

// rows returns the cells of a table.
func rows(name string) (all [][]string) {
	text, err := files.ReadFile("rows/" + name)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	return all
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// contender is one way to stop a server.
type contender struct {
	name   string
	words  []string      // before the server's
	sleep  time.Duration // before TERM, as in a preStop hook
	scenes []string      // and quick
}

// The names of contenders that claims are about. defaultHold is the hold with lameduck's
// defaults, shortHold ends after a short silence, and floored has a floor as long as the
// longest lag. safeSleep is the shortest sleep that is longer than every lag, slow requests
// included. keptSleep is as long as the default hold where clients never let go, if the
// ceiling of 19 s ends it: a longer sleep loses as many requests. To the oracle TERM is sent
// after the removal.
const (
	defaultHold = "lameduck --until=quiet"
	shortHold   = "lameduck --until=quiet --quiet-for=1s"
	settledHold = "lameduck --until=settled"
	drainedHold = "lameduck --until=drained"
	floored     = "lameduck --until=quiet --delay=10"
	safeSleep   = "sleep 14, then tini"
	keptSleep   = "sleep 20, then tini"
	oracle      = "oracle"

	demoShort = "sleep 2"
	demoLong  = "sleep 10"
	demoHold  = "lameduck"
)

// defaultQuiet is the default of --quiet-for.
const defaultQuiet = 4 * time.Second

func contenders() (all []contender) {
	for _, cells := range rows("contenders.txt") {
		all = append(all, contender{cells[0], strings.Fields(cells[1]), duration(cells[2]), strings.Fields(cells[3])})
	}
	return all
}

// contenderOf returns a contender by name.
func contenderOf(name string) *contender {
	list := contenders()
	return &list[slices.IndexFunc(list, func(c contender) bool { return c.name == name })]
}

func (c *contender) plays(s scene) bool { return slices.Contains(c.scenes, string(s)) }

// holds reports whether the contender is lameduck.
func (c *contender) holds() bool { return len(c.words) > 0 && c.words[0] == "lameduck" }

// command returns the server's command line after the contender's words.
func (c *contender) command(o *options, s *server, words []string) []string {
	if c.holds() {
		return slices.Concat([]string{o.lameduck, "--log-format=json"}, c.flags(o.scale, s), []string{"--"}, words)
	}
	return slices.Concat(c.words, words)
}

// flags returns lameduck's flags. Defaults are left out unless time is compressed.
func (c *contender) flags(by scale, s *server) []string {
	words := c.words[1:]
	flags := []string{"--grace-period=" + s.grace.String()}
	if s.graceful != syscall.SIGTERM {
		flags = append(flags, fmt.Sprintf("--rewrite=TERM:%d", int(s.graceful)))
	}
	if by != 1 {
		flags = append(flags, "--max-delay="+by.of(s.ceiling()).String(), "--quiet-for="+by.of(defaultQuiet).String())
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
