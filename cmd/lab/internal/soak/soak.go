// Package soak runs lameduck for a long time, at random: as PID 1 of namespaces of its
// own, before a server under load, through storms of signals and orphans, stops and
// health checks. One life lasts as long as the soak; beside it short lives follow each
// other.
//
// In no life may descriptors, threads, zombies or memory grow, and a lameduck with
// no work to do must sleep. The soak ends at the first fault and prints the seed that
// chooses the same course again. Root is not needed where unprivileged user namespaces
// are allowed.
package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/netns"
)

// Roles are the programs of the soak, by the first argument.
var Roles = map[string]func(args []string) error{"stage": stage, "server": serve, "bad": bad}

// options is the command line.
type options struct {
	length time.Duration
	seed   uint64
	init   string
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("lab soak", flag.ContinueOnError)
	f.DurationVar(&o.length, "for", 10*time.Minute, "the length of the soak")
	f.Uint64Var(&o.seed, "seed", rand.Uint64(), "what chooses the course")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: lab soak [flags] LAMEDUCK")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() != 1 {
		return nil, errors.New("want one argument, the built lameduck; see lab soak --help")
	}
	o.init = f.Arg(0)
	return o, nil
}

// Run soaks the lameduck of args. The error tells the seed of the course.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: %v, seed %d\n", o.length, o.seed)
	if err := o.soak(ctx, out); err != nil {
		return fmt.Errorf("%w\nsoak: again with -seed=%d", err, o.seed)
	}
	return nil
}

// inside is set in the process in the new network namespace.
const inside = "SOAK_INSIDE"

// enter runs the program again in new namespaces and exits with the exit code of the
// second process. In the second process enter returns.
func enter() error {
	if os.Getenv(inside) != "" {
		return netns.LoopbackUp()
	}
	spaces := netns.Namespaces{Flags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Env: inside + "=1"}
	code, err := spaces.Reenter()
	if err == nil {
		os.Exit(code)
	}
	return err
}

// stage gives PID 1 of new namespaces a /proc of its own and becomes the program of
// args.
func stage(args []string) error {
	if err := netns.MountProc(); err != nil {
		return err
	}
	return fmt.Errorf("cannot become %q: %w", args[0], syscall.Exec(args[0], args, os.Environ()))
}

// soak runs lives until a life fails or the time is over.
func (o *options) soak(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(o.length)
	var total tally
	var lives sync.WaitGroup
	for i, course := range []func(*life) error{(*life).long, (*life).short} {
		lives.Go(func() {
			rnd := rand.New(rand.NewPCG(o.seed, uint64(i)))
			for n := 0; ctx.Err() == nil && time.Now().Before(end); n++ {
				l := &life{init: o.init, port: 20000 + 1000*i + 10*(n%100), until: end, rnd: rnd, total: &total}
				if err := l.live(ctx, course); err != nil {
					cancel(err)
				}
			}
		})
	}
	lives.Wait()
	fmt.Fprintln(out, "soak:", &total)
	switch err := context.Cause(ctx); {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case err != nil:
		return err
	}
	return total.empty()
}

// tally counts the acts of all lives.
type tally struct {
	mu     sync.Mutex
	order  []string
	counts map[string]int
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	if _, known := t.counts[what]; !known {
		t.order = append(t.order, what)
	}
	t.counts[what] += n
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var parts []string
	for _, what := range t.order {
		parts = append(parts, fmt.Sprintf("%d %s", t.counts[what], what))
	}
	return strings.Join(parts, ", ")
}

// empty returns the error of a soak without acts.
func (t *tally) empty() error {
	for _, what := range []string{"lives", "requests", "signals", "orphans"} {
		if t.counts[what] == 0 {
			return fmt.Errorf("no %s: nothing was tried", what)
		}
	}
	return nil
}
