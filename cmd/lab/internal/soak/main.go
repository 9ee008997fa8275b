// Soak lets lameduck live, at random: as PID 1 of namespaces of its own, before a
// server under load, through storms of signals and orphans, stops and checks; one
// life as long as it all lasts, and beside it one short life after the other.
//
//	soak [-for=10m] [-seed=N] LAMEDUCK
//
// In all of them nothing may leak or grow: descriptors, threads, zombies, memory;
// and who is left alone sleeps. It exits with 1 at the first fault, and says the
// seed that chose the same course. Root is not needed where unprivileged user
// namespaces are allowed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2:])
	}
	length := flag.Duration("for", 10*time.Minute, "how long it lasts")
	seed := flag.Uint64("seed", rand.Uint64(), "chooses the course")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: soak [-for=10m] [-seed=N] LAMEDUCK")
		os.Exit(2)
	}
	if err := enter(); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	fmt.Printf("soak: %v, seed %d\n", *length, *seed)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, flag.Arg(0), *length, *seed); err != nil {
		fmt.Fprintf(os.Stderr, "soak: %v\nsoak: again with -seed=%d\n", err, *seed)
		os.Exit(1)
	}
}

// roles are the programs that this one is for itself.
var roles = map[string]func(args []string){"stage": stage, "server": serve, "bad": bad}

// soak is the lives, until one of them fails or the time is over.
func soak(ctx context.Context, init string, length time.Duration, seed uint64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Now().Add(length)
	var total tally
	var lives sync.WaitGroup
	for i, live := range []func(*life) error{(*life).long, (*life).short} {
		lives.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := 0; ctx.Err() == nil && time.Now().Before(end); n++ {
				if err := begin(ctx, init, 20000+1000*i+10*(n%100), end, rnd, &total, live); err != nil {
					cancel(err)
				}
			}
		})
	}
	lives.Wait()
	fmt.Println("soak:", &total)
	switch err := context.Cause(ctx); {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case err != nil:
		return err
	}
	return total.empty()
}

// tally is what has been done; all lives share it.
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

// empty is the error of a soak in which nothing happened.
func (t *tally) empty() error {
	for _, what := range []string{"lives", "requests", "signals", "orphans"} {
		if t.counts[what] == 0 {
			return fmt.Errorf("no %s: nothing was tried", what)
		}
	}
	return nil
}
