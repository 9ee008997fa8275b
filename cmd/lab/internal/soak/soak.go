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
	"expvar"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
)

// Roles are the programs of the soak, by the first argument.
var Roles = map[string]func(args []string) error{"server": serve}

// options is the command line.
type options struct {
	length time.Duration
	seed   uint64
	init   string
}

// Run soaks the lameduck of args. The error tells the seed of the course.
func Run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	f := flag.NewFlagSet("lab soak [flags] LAMEDUCK", flag.ContinueOnError)
	f.DurationVar(&o.length, "for", 10*time.Minute, "the length of the soak")
	f.Uint64Var(&o.seed, "seed", rand.Uint64(), "what chooses the course")
	var err error
	o.init, err = stage.Parse(f, args)
	if err != nil {
		return err
	}
	dir, err := stage.Enter(stage.All, false)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "soak: %v, seed %d\n", o.length, o.seed)
	if err := o.soak(ctx, dir, out); err != nil {
		return fmt.Errorf("%w\nsoak: again with -seed=%d", err, o.seed)
	}
	return nil
}

// soak runs lives until a life fails or the time is over, a long one and short ones.
func (o *options) soak(ctx context.Context, dir string, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(o.length)
	var total expvar.Map // of what was done
	var lives sync.WaitGroup
	for i, until := range []time.Time{end, time.Now()} {
		lives.Go(func() {
			rnd := rand.New(rand.NewPCG(o.seed, uint64(i)))
			for n := 0; ctx.Err() == nil && time.Now().Before(end); n++ {
				l := &life{init: o.init, port: 20000 + 1000*i + 10*(n%100), until: until, rnd: rnd, total: &total}
				if err := l.live(ctx, dir); err != nil {
					cancel(err)
				}
			}
		})
	}
	lives.Wait()
	fmt.Fprintln(out, "soak:", &total)
	if ctx.Err() == nil && total.Get("lives") == nil {
		return errors.New("no time to try anything")
	}
	return context.Cause(ctx)
}
