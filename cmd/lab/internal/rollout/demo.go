package rollout

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// demo is the smallest case: one stop of a server that dies on TERM, bare and held, on the
// loopback interface, without other programs and without privileges. The error is nil if
// requests failed without lameduck, and none failed with lameduck.
func demo(ctx context.Context, o *options, out io.Writer) error {
	p, err := openLoopback()
	if err != nil {
		return err
	}
	s := newStrip(out, o.rate)
	intro(out, s, o)
	trials := plan(o)
	for _, t := range trials {
		t.strip = s
		fmt.Fprintf(out, "\n%s\n", caption(o, t))
		if err := t.settle(ctx, o, p); err != nil {
			return err
		}
		s.end(t.Stops[0])
		quote(out, t.Stops[0].said)
	}
	fmt.Fprintln(out)
	for _, t := range trials {
		fmt.Fprintln(out, t.summary())
	}
	var claims strings.Builder
	err = verdict(&claims, summarize(o, trials))
	if err != nil {
		fmt.Fprint(out, claims.String())
	}
	return err
}

// smallest sets the options of the demo.
func (o *options) smallest() {
	o.seed, o.scale = 1, 1
	o.rate, o.repeat = 100, 1
	o.lags = []lag{{"demo", fixed(3 * time.Second)}}
	o.contenders = []contender{
		{name: "bare"},
		{name: "lameduck --until=quiet", init: "lameduck", until: "quiet", quiet: defaultQuiet},
	}
	o.servers = allServers()[:1]
}

func intro(out io.Writer, s *strip, o *options) {
	fmt.Fprintf(out, "Two replicas behind a balancer; the old one is stopped, as in every rollout.\n")
	fmt.Fprintf(out, "The balancer learns of the stop late, as balancers do, and sends for %.0f s more.\n", o.lags[0].draw(nil).Seconds())
	fmt.Fprintf(out, "%d requests/s, no retries. A column is %.1f s: %s all answered, %s some failed.\n",
		o.rate, column.Seconds(), s.good, s.bad)
}

// caption is the command line as typed.
func caption(o *options, t *trial) string {
	words := t.contender.command(o, t.server, []string{"server"})
	if t.contender.init == "lameduck" {
		words[0] = "lameduck"
	}
	return fmt.Sprintf("%s\n%s$ %s", t.title(), margin, strings.Join(words, " "))
}

func (t *trial) title() string {
	if t.contender.init == "" {
		return t.Contender
	}
	return "under " + t.contender.init
}

func (t *trial) summary() string {
	s := t.Stops[0]
	return fmt.Sprintf("%-16s%d requests  %-24sgone %.1f s after TERM", t.title(), t.Requests, s.failures(), s.StopMS/1000)
}

// failures tells how many requests failed, and how: "149 failed (148 5xx, 1 cut)".
func (s *stop) failures() string {
	if s.failed() == 0 {
		return "0 failed"
	}
	return fmt.Sprintf("%d failed (%s)", s.failed(), load.Summary(s.Failed))
}

// quote prints the output of a process, wrapped between words.
func quote(out io.Writer, text string) {
	const width = 79
	for line := range strings.Lines(text) {
		used := width
		for _, word := range strings.Fields(line) {
			if used+1+len(word) > width {
				fmt.Fprintf(out, "\n%s%s", margin, word)
				used = len(margin) + len(word)
				continue
			}
			fmt.Fprint(out, " ", word)
			used += 1 + len(word)
		}
	}
	if text != "" {
		fmt.Fprintln(out)
	}
}
