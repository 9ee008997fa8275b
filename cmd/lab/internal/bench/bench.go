// Package bench measures lameduck beside other inits, all as PID 1 of namespaces of
// their own, in turns within one run, and judges the ratios by budgets. Absolute times
// belong to the machine and are not judged.
//
// Run the benchmark on an idle machine. Root is not needed where unprivileged user namespaces
// are allowed. On one processor (taskset -c 0) a run shows how much of a figure is
// threads that wake each other on other processors.
package bench

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// Run measures and prints, and fails if a budget is missed.
func Run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("lab bench [flags] LAMEDUCK", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer samples, smaller crowds and a shorter idle time")
	footprint := flags.Bool("footprint", false, "only what an idle init costs")
	lameduck := stage.Parse(flags, args)
	dir := stage.Enter(ctx, stage.All)
	defer context.AfterFunc(ctx, func() {
		fmt.Fprintln(os.Stderr, "lab: interrupted")
		os.Exit(1) // which ends all processes of the namespace
	})()
	debug.SetGCPercent(-1) // the collector would run beside the measurements
	b := &bench{dir: dir, less: 1, figures: map[[2]string][]float64{}}
	if *quick {
		b.less = 5
	}
	b.measure(lameduck, *footprint)
}

// bench is a run of the benchmark.
type bench struct {
	dir     string                  // for programs
	less    int                     // all repetitions and times are divided by less
	warming bool                    // samples do not count
	figures map[[2]string][]float64 // the samples, by figure and contender
}

// measure takes the figures one after the other: two measurements at a time would
// disturb each other.
func (b *bench) measure(lameduck string, footprint bool) {
	inits := b.inits(lameduck)
	field := append([]contender{{name: "bare"}}, inits...)
	if !footprint {
		b.start(field, b.build("raw", "nothing", "-E main.nothing"))
		b.latency(field, b.build("raw", "answer", "-E main.answer"))
		b.reap(inits, "storm", orphans/breeders, breeders, ":")
		b.reap(inits, "paced", singles, 1, between)
	}
	holder := contender{"with a hold", []string{lameduck, "--until=quiet", "--"}}
	forkwait := contender{"go", []string{b.build("forkwait", "forkwait", "")}}
	b.idle(append(inits, holder, forkwait))
	if !footprint {
		b.holds(lameduck)
	}
	var names []string
	for _, c := range append(field, holder, forkwait, contender{name: ss}) {
		names = append(names, c.name)
	}
	b.print(names)
}

// add adds a sample of a figure, by its key.
func (b *bench) add(what, name string, value float64) {
	must.Be(strings.Contains(figures, "\n\t"+what+" "), "no figure %q", what)
	if !b.warming {
		key := [2]string{what, name}
		b.figures[key] = append(b.figures[key], value)
	}
}

// warm is the number of first rounds that do not count.
const warm = 5

// turns calls do for each contender in every round, in a new order each time, so that no
// contender always profits or suffers from the same predecessor.
func turns[T any](b *bench, rounds int, field []T, do func(T)) {
	for round := range warm + rounds {
		b.warming = round < warm
		for _, i := range rand.Perm(len(field)) {
			do(field[i])
		}
	}
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
