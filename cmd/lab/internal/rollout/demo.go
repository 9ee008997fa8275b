package rollout

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// The demo has demoRate requests a second. A symbol stands for the requests that were planned in
// a column of time.
const (
	demoRate   = 100
	column     = 250 * time.Millisecond
	eachColumn = int(demoRate * column / time.Second)
)

// cell is a column of a row.
type cell struct {
	Ended  int `json:"ended"`
	Failed int `json:"failed"`
}

// cells returns the columns up to the first in which a request has not ended.
func (l *sender) cells() (all []cell) {
	results := l.Results()
	for part := range slices.Chunk(results[:l.Count().Settled], eachColumn) {
		c := cell{Ended: len(part)}
		for _, r := range part {
			if r.Kind != load.Answered {
				c.Failed++
			}
		}
		if c.Ended == eachColumn {
			all = append(all, c)
		}
	}
	return all
}

// row returns a trial of the demo as text, while it is played or afterwards.
func (t *trial) row() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s", t.Contender)
	for _, c := range t.load.cells() {
		symbol := "."
		if c.Failed > 0 {
			symbol = "x"
		}
		b.WriteString(symbol)
	}
	if t.over.Load() {
		fmt.Fprintf(&b, " %s, %d failed", seconds(t.Stops[0].StopMS), t.Stops[0].failed())
	}
	return b.String()
}

const intro = `Each contender plays the same stop: two replicas behind a balancer, %.0f requests/s,
no retries. The old replica is stopped; the balancer learns of the stop %.0f s later, and
sends until then.

`

// Demo plays one stop with each contender of the demo, side by side, or what else -run
// selects: the anatomy of a stop.
func Demo(ctx context.Context, args []string, out io.Writer) error {
	o := &options{scenes: []scene{demo, anatomy}, repeat: 1, jobs: 4, stops: 1, run: "^demo"}
	return o.main("demo", args, out, func() *findings {
		// lameduck watch counts the resets of a whole network namespace.
		_, shared := stage.Enter(syscall.CLONE_NEWNET, true)
		o.lone = shared == nil
		trials := o.plan()
		first := trials[0]
		fmt.Fprintf(out, intro, first.server.rate, first.lags[0].Lag.Seconds())
		for _, t := range trials {
			fmt.Fprintf(out, "  %-10s%s\n", t.Contender, t.contender.how(t.server))
		}
		lines := strips
		if first.server.scene == anatomy {
			lines = progress
		}
		f := o.play(ctx, os.Stdout, trials, lines)
		if first.loses() {
			fmt.Fprintf(out, "\nlameduck watch says beside any server what a stop costs. Beside the bare one:\n\n")
			first.Stops[0].Watch.print(out, shared)
		}
		fmt.Fprintf(out, "\nNobody told lameduck about the lag. Its lines on standard error:\n\n")
		for _, r := range trials[len(trials)-1].Stops[0].Reports {
			fmt.Fprintf(out, "  lameduck: %s\n", r.Message)
		}
		fmt.Fprintln(out)
		return f
	})
}

// strips returns the rows of the demo, below a legend and marks.
func strips(trials []*trial) []string {
	const stop = 10 + int(usualWarm/column)
	removed := stop + int(trials[0].lags[0].Lag/column)
	all := []string{
		fmt.Sprintf("\n. %d requests, all answered    x some of these failed    and when it was gone\n", eachColumn),
		fmt.Sprintf("%*s%-*s%s", stop, "", removed-stop, "stop", "the balancer learns of it"),
		fmt.Sprintf("%*s%-*s%s", stop, "", removed-stop, "|", "|"),
	}
	for _, t := range trials {
		all = append(all, t.row())
	}
	return all
}

// drawDemo draws the rows of a demo.
func drawDemo(f *findings) string {
	const cellWidth = 12
	ticks := []int{0, 2000, 4000, 6000, 8000, 10000}
	data := map[string]any{"Rows": f.Trials, "Height": 86 + 54*len(f.Trials), "Rate": demoRate, "Each": eachColumn,
		"Lag": f.Trials[0].Stops[0].Lag.Milliseconds(), "Ticks": ticks}
	return draw("demo.svg", data, template.FuncMap{
		"x":      func(ms any) float64 { return 90 + cellWidth*(usualWarm.Seconds()+num(ms)/1000)/column.Seconds() },
		"how":    func(t *trial) string { return t.contender.how(t.server) },
		"failed": (*stop).failed,
		"class": func(s *stop) string {
			if s.failed() > 0 {
				return "h bad"
			}
			return "h good"
		},
	})
}

// drawAnatomy draws a stop along a time axis, from the moment before the stop to KILL.
func drawAnatomy(t *trial) string {
	const earliest, second = -2000, 1000
	s, grace := t.Stops[0], t.server.grace.Milliseconds()
	x := func(ms any) float64 { return 44 + 798*(num(ms)-earliest)/float64(grace-earliest) }
	counts := make([]int, (grace-earliest)/second)
	for _, ms := range s.Connections {
		if ms >= earliest {
			counts[(ms-earliest)/second]++
		}
	}
	type bar struct {
		From   int
		Height float64
	}
	data := struct {
		stage.Report
		Flags      string
		Bars       []bar
		Ticks      []int64
		Grace, Lag int64
		Code       int
	}{Report: s.report(), Flags: strings.Join(t.contender.flags(1, t.server), " "), Grace: grace, Lag: s.Lag.Milliseconds()}
	data.Code = *data.ExitCode
	for i, n := range counts {
		data.Bars = append(data.Bars, bar{earliest + i*second, 124 * float64(n) / float64(slices.Max(counts))})
	}
	for ms := int64(0); ms <= grace; ms += 5 * second {
		data.Ticks = append(data.Ticks, ms)
	}
	return draw("stop.svg", data, template.FuncMap{"x": x,
		// event is a moment: a line to the axis, with text above.
		"event": func(ms, baseline any, kind, class, format string, args ...any) string {
			aside := -4.0
			if strings.HasSuffix(class, "e") {
				aside = 4
			}
			return line(kind, x(ms), num(baseline)+5, x(ms), 230) + text(x(ms)+aside, baseline, class, format, args...)
		},
		// span is the time to a moment, with text behind.
		"span": func(ms, y any, format string, args ...any) string {
			end := func(x float64) string { return line("span", x, num(y)-6, x, num(y)+6) }
			return end(x(0)) + end(x(ms)) + line("span", x(0), y, x(ms), y) + text(x(ms)+10, num(y)+4, "", format, args...)
		},
	})
}
