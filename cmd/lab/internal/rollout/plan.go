package rollout

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// attempts is how often a trial is played on a machine that stands still.
const attempts = 3

// plan returns every trial in the order of play: repetition by repetition, and drawn
// within, so that a busy time of the machine does not meet one contender alone.
func plan(o *options) []*trial {
	random := rand.New(rand.NewPCG(o.seed, 1<<32))
	var all []*trial
	for n := range o.repeat {
		from := len(all)
		for i := range o.contenders {
			for j := range o.servers {
				c, s := &o.contenders[i], &o.servers[j]
				if !c.plays(s.scene) {
					continue
				}
				all = append(all, &trial{Contender: c.name, Server: s.name, Repetition: n,
					contender: c, server: s, lags: drawLags(o.lags, o.seed, n, number(s), o.scale), seed: o.seed + uint64(n)})
			}
		}
		part := all[from:]
		random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		// Long trials first, or the last long trial would be played alone.
		slices.SortStableFunc(part, func(a, b *trial) int { return long(b) - long(a) })
	}
	return all
}

// number returns a server's number among all servers: a selection meets the same lags.
func number(s *server) int {
	return slices.IndexFunc(allServers(), func(other server) bool { return other.name == s.name })
}

func long(t *trial) int {
	if t.server.longLived || t.server.scene == kept && t.contender.init == "lameduck" {
		return 1
	}
	return 0
}

// runAll plays the trials of scene after scene, and returns the first error.
func runAll(ctx context.Context, o *options, p *room, trials []*trial, bar *progress) error {
	for _, s := range allScenes {
		others := func(t *trial) bool { return t.server.scene != s }
		part := slices.DeleteFunc(slices.Clone(trials), others)
		if err := runSome(ctx, o, s.jobs(o.jobs), p, part, bar); err != nil {
			return err
		}
	}
	return nil
}

// runSome plays trials, so many jobs at a time, and returns the first error.
func runSome(ctx context.Context, o *options, jobs int, p *room, trials []*trial, bar *progress) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	next := make(chan *trial)
	var workers sync.WaitGroup
	for i := range jobs {
		workers.Go(func() {
			// Not all at once, or the workers would stay in step.
			pauseFor(ctx, time.Duration(i)*100*time.Millisecond)
			for t := range next {
				if err := t.settle(ctx, o, p); err != nil {
					fail(err)
				}
				bar.step()
			}
		})
	}
	for _, t := range trials {
		if ctx.Err() == nil {
			next <- t
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// settle plays a trial, and again if the machine stood still, whatever the result.
func (t *trial) settle(ctx context.Context, o *options, p *room) error {
	for {
		t.RolloutS = 0
		if err := t.run(ctx, o, p); err != nil {
			return err
		}
		if !t.stalled(o.scale) || t.Discarded == attempts-1 {
			return nil
		}
		t.Discarded++
	}
}
