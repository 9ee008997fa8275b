package rollout

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// A column of the demo has the requests that were planned in so much time, at 100 a second.
const (
	column     = 250 * time.Millisecond
	eachColumn = 25
)

// cells returns how many requests failed, by column, up to the first request that has not ended.
func (l *sender) cells() (failed []int) {
	results := l.Results()
	settled := l.Count().Settled
	for part := range slices.Chunk(results[:settled-settled%eachColumn], eachColumn) {
		n := 0
		for _, r := range part {
			if r.Kind != load.Answered {
				n++
			}
		}
		failed = append(failed, n)
	}
	return failed
}

// Demo plays one stop with each contender of the demo, side by side.
func Demo(ctx context.Context, args []string) {
	o := &options{demo: true, replicas: 2, repeat: 1, stops: 1}
	o.main("demo", args, func() findings {
		// lameduck watch, which counts the resets of a whole network namespace, is left out without one.
		o.lone = must.Try(func() { stage.Enter(ctx, syscall.CLONE_NEWNET) }) == nil
		trials := o.plan()
		rate, lag := trials[0].server.Rate, trials[0].lags[0].Seconds()
		fmt.Print(render("before.txt", map[string]any{"Rate": rate, "Lag": lag, "Trials": trials}))
		o.show(ctx, trials)
		fmt.Print(render("after.txt", trials))
		return trials
	})
}

// show plays trials, and prints their strips: on a terminal as they change, elsewhere once, at the end.
func (o *options) show(ctx context.Context, trials findings) {
	info := must.Get(os.Stdout.Stat())
	live := info.Mode()&os.ModeCharDevice != 0
	erase := ""
	draw := func() {
		text := strips(trials)
		fmt.Print(erase, text)
		erase = fmt.Sprintf("\x1b[%dA\x1b[J", strings.Count(text, "\n"))
	}
	ended := make(chan error, 1)
	go func() { ended <- o.playAll(ctx, trials) }()
	for {
		select {
		case err := <-ended:
			draw()
			must.Do(err)
			return
		case <-time.After(column):
			if live {
				draw()
			}
		}
	}
}

// strips returns the rows of the demo, below a legend and marks, while it is played or afterwards.
func strips(trials findings) string {
	const stop = 10 + int(warm/column)
	removed := stop + int(trials[0].lags[0]/column)
	text := fmt.Sprintf("\n. %d requests, all answered    x some of these failed    and when it was gone\n\n", eachColumn)
	text += fmt.Sprintf("%*s%-*s%s\n", stop, "", removed-stop, "stop", "the balancer learns of it")
	text += fmt.Sprintf("%*s%-*s%s\n", stop, "", removed-stop, "|", "|")
	for _, t := range trials {
		text += fmt.Sprintf("%-10s", t.Contender)
		for _, failed := range t.load.cells() {
			if failed > 0 {
				text += "x"
			} else {
				text += "."
			}
		}
		if t.over.Load() {
			text += fmt.Sprintf(" %s, %d failed", seconds(t.Stops[0].StopMS), t.Stops[0].Losses())
		}
		text += "\n"
	}
	return text
}
