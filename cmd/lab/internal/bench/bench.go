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
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// patience bounds all measurements but the idling.
const patience = 10 * time.Minute

// inside is set in the process that runs as root of a user namespace.
const inside = "LAMEDUCK_BENCH_INSIDE"

// options is the command line.
type options struct {
	quick, traffic bool
	footprint      bool
	lulls          int
	idle           time.Duration
	source         string
	lameduck       string
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab bench", flag.ContinueOnError)
	f.BoolVar(&o.quick, "quick", false, "fewer samples, and a shorter idle time, scaled to a minute")
	f.BoolVar(&o.traffic, "traffic", false, "only the samples of traffic, beside ss")
	f.BoolVar(&o.footprint, "footprint", false, "only what an idle init costs, as a table in Markdown")
	f.IntVar(&o.lulls, "lulls", 0, "only so many stops at a lull, for each of two numbers of connections")
	f.DurationVar(&o.idle, "idle", 0, "the idle time (default 2m, with -quick 20s)")
	f.StringVar(&o.source, "source", "../..", "the source tree of lameduck")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab bench [flags] LAMEDUCK")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() != 1 {
		return nil, errors.New("want one argument, the built lameduck; see lab bench --help")
	}
	o.lameduck = f.Arg(0)
	return o, nil
}

func (o *options) effort() effort {
	e := full
	if o.quick {
		e = brief
	}
	if o.idle > 0 {
		e.idle = o.idle
	}
	if o.traffic {
		e.runs, e.idle = 0, 0
	}
	return e
}

// Run measures and prints. The error says that a budget is missed, or why nothing could
// be measured.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if os.Geteuid() == 0 || os.Getenv(inside) != "" {
		return o.measure(ctx, out)
	}
	code, err := netns.Namespaces{Flags: syscall.CLONE_NEWNS, Env: inside + "=1"}.Reenter()
	if err == nil {
		os.Exit(code)
	}
	return fmt.Errorf("%w: run the benchmark as root", err)
}

func (o *options) measure(ctx context.Context, out io.Writer) (err error) {
	runtime.LockOSThread() // the parent-death signal belongs to the forking thread
	debug.SetGCPercent(-1) // the collector would run beside the measurements
	e := o.effort()
	// Where /tmp is mounted noexec, go run works by GOTMPDIR too.
	dir, err := os.MkdirTemp(os.Getenv("GOTMPDIR"), "lameduck-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer recoverFailure(&err)
	done := make(chan struct{})
	defer close(done)
	go giveUp(ctx, done, dir, patience+e.idle)
	if o.lulls > 0 {
		lulls(contender{ours, []string{must(filepath.Abs(o.lameduck))}, true}, o.lulls, out)
		return nil
	}
	b := builder{dir: dir, source: o.source}
	if o.footprint {
		fmt.Fprintf(os.Stderr, "bench: this takes %v of idling\n", settle+e.idle)
		return printFootprint(out, inits(o.lameduck), e)
	}
	fmt.Fprintf(os.Stderr, "bench: this takes %v of idling, and up to three minutes more\n", e.idle)
	field := b.gather(o.lameduck)
	f := measure(field, b, e)
	f.print(out, field, e)
	if !printBudgets(out, f) {
		return errors.New("a budget is missed")
	}
	return nil
}

func (f figures) print(out io.Writer, field []contender, e effort) {
	if e.runs > 0 {
		printFigures(out, field, columns, f)
	}
	printFigures(out, []contender{{name: ss}, {name: ours}}, sampleColumns, f)
	if e.runs > 0 && e.idle < full.idle {
		fmt.Fprintf(out, "\nThe idle time was %v; switches are scaled to a minute.\n", e.idle)
	}
}

// giveUp ends the program on a signal or at the limit, unless done comes first.
// Parent-death signals end all processes of the program.
func giveUp(ctx context.Context, done <-chan struct{}, dir string, limit time.Duration) {
	reason := "interrupted"
	select {
	case <-done:
		return
	case <-ctx.Done():
	case <-time.After(limit):
		reason = fmt.Sprintf("not done after %v", limit)
	}
	os.RemoveAll(dir)
	fmt.Fprintln(os.Stderr, "bench:", reason)
	os.Exit(1)
}

// failure is the reason why nothing can be measured, as the value of a panic: a failure
// anywhere ends the whole run.
type failure struct{ error }

func recoverFailure(err *error) {
	switch reason := recover().(type) {
	case nil:
	case failure:
		*err = reason.error
	default:
		panic(reason)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}
