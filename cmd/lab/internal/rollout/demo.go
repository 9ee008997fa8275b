package rollout

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
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

// The layout of the picture of the demo, in pixels.
const (
	demoWidth  = 860
	demoTop    = 66 // of the first row
	demoPitch  = 54 // from row to row
	stripAt    = 90 // where the cells begin
	cellWidth  = 12 // of a column
	cellHeight = 22
)

// drawDemo draws the rows of a demo. In each cell, the red part is the share of the failed
// requests.
func drawDemo(f *findings) string {
	bottom := demoTop + len(f.Trials)*demoPitch
	p := &picture{width: demoWidth, height: bottom + 20,
		title: "One stop of a server, played by four contenders: requests that fail, and when the server is gone"}
	p.text(0, 14, "q",
		"make demo: two replicas behind a balancer, %d requests/s, no retries; the old replica is stopped", demoRate)
	lag := f.Trials[0].Stops[0].Lag
	p.text(stripX(0)-4, 42, "", "stop")
	p.text(stripX(lag)-4, 42, "", "the balancer learns of it, %.0f s late", lag.Seconds())
	for i, t := range f.Trials {
		p.strip(t, float64(demoTop+i*demoPitch))
	}
	for s := 0; s <= 10; s += 2 {
		p.text(stripX(time.Duration(s)*time.Second), float64(bottom+8), "q s m", "%d s", s)
	}
	p.text(demoWidth, float64(bottom+8), "q s e", "a cell is %d requests", eachColumn)
	return p.String()
}

// stripX returns the place of a time after the stop.
func stripX(d time.Duration) float64 {
	return stripAt + cellWidth*(usualWarm+d).Seconds()/column.Seconds()
}

func (p *picture) strip(t *trial, y float64) {
	p.text(0, y+15, "h", "%s", t.Contender)
	for i, c := range t.Cells {
		x := stripAt + float64(i*cellWidth)
		bad := cellHeight * float64(c.Failed) / float64(c.Ended)
		p.rect(x, y, cellWidth-2, cellHeight-bad, "ok")
		p.rect(x, y+cellHeight-bad, cellWidth-2, bad, "bad")
	}
	s := t.Stops[0]
	for _, d := range []time.Duration{0, s.Lag} {
		p.line("bound", stripX(d)-1, y-5, stripX(d)-1, y+cellHeight+3)
	}
	gone := stripX(time.Duration(s.StopMS*float64(time.Millisecond))) - 1
	p.line("mark", gone, y-5, gone, y+cellHeight+5)
	p.text(stripAt, y+cellHeight+14, "q s", "%s", t.contender.how(t.server))
	class := "h good"
	if s.failed() > 0 {
		class = "h bad"
	}
	x := stripAt + float64(len(t.Cells)*cellWidth) + 8
	p.text(x, y+15, class, "%d failed, gone after %s", s.failed(), seconds(s.StopMS))
}
