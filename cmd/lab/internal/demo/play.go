package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// column is the time that one symbol of a row stands for, before the time of the load
// before the stop, and after that after the stop.
const (
	column = 250 * time.Millisecond
	before = 2 * column
	after  = 2 * column
)

// play is one stop as a contender plays the stop.
type play struct {
	*contender
	lag   time.Duration // from the stop to the removal from the balancer
	warm  time.Duration // of load before the stop
	gap   func() time.Duration
	think func() time.Duration
	row   *row

	b       *balancer
	old     *replica
	next    *replica
	stopped time.Time
}

// attempts is how often a run is played on a machine that stands still.
const attempts = 8

// perform plays a run, and again if the machine stood still. again is called before each
// further attempt.
func perform(run func() ([]*play, error), again func(reason error)) ([]*play, error) {
	for n := 1; ; n++ {
		plays, err := run()
		still := stoodStillError{}
		if !errors.As(err, &still) {
			return plays, err
		}
		if n == attempts {
			return nil, fmt.Errorf("%w, and so at %d attempts: repeat the demo when less runs beside it", err, n)
		}
		again(err)
	}
}

// playAll plays stops at the same time.
func playAll(ctx context.Context, plays []*play) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for _, p := range plays {
		defer p.close()
		if err := p.open(); err != nil {
			return err
		}
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, p := range plays {
		all.Go(func() { p.run(ctx, began, fail) })
	}
	all.Wait()
	return context.Cause(ctx)
}

// open starts the processes.
func (p *play) open() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	p.b, err = openBalancer()
	if err != nil {
		return err
	}
	p.old, err = startReplica(p.command(exe))
	if err != nil {
		return err
	}
	p.next, err = startReplica([]string{exe, "serve"})
	p.b.replicas = []*replica{p.old, p.next}
	return err
}

// run plays the stop under load. The load goes on to the end of a column.
func (p *play) run(ctx context.Context, began time.Time, fail func(error)) {
	s := &sender{addr: p.b.addr(), began: began, gap: p.gap, think: p.think, row: p.row, failed: fail}
	loaded := make(chan struct{})
	go func() {
		s.run(ctx)
		close(loaded)
	}()
	p.stop(ctx, began.Add(p.warm))
	columns := (time.Since(began) + after + column - 1) / column
	s.end.Store(int64(columns * column))
	<-loaded
	if ctx.Err() == nil {
		p.row.finish(p.old.at.Sub(p.stopped))
	}
}

// stop stops the old replica at a time, and returns when the replica is gone and removed
// from the balancer, or ctx has ended.
func (p *play) stop(ctx context.Context, at time.Time) {
	if !pauseUntil(ctx, at) {
		return
	}
	p.stopped = time.Now()
	go p.contender.stop(p.old.cmd.Process, p.old.gone)
	if !pauseUntil(ctx, p.stopped.Add(p.lag)) {
		return
	}
	p.b.remove(p.old)
	select {
	case <-p.old.gone:
	case <-ctx.Done():
	}
}

// pauseUntil reports false if ctx ended first.
func pauseUntil(ctx context.Context, at time.Time) bool {
	select {
	case <-time.After(time.Until(at)):
		return true
	case <-ctx.Done():
		return false
	}
}

// close ends all processes.
func (p *play) close() {
	if p.b != nil {
		p.b.close()
	}
	for _, r := range []*replica{p.old, p.next} {
		if r != nil {
			r.close()
		}
	}
}
