package rollout

import (
	"context"
	"fmt"
	"time"
)

// warm is the time for pools to fill and for the first sample, before a measurement.
const warm = 500 * time.Millisecond

// arena has the processes of a trial.
type arena struct {
	*trial
	o        *options
	room     *room
	balancer balancer
	replicas []*replica // the next to be stopped first
	all      []*replica
}

// grow starts a replica and adds the replica to the balancer.
func (a *arena) grow(ctx context.Context) (*replica, error) {
	p, err := a.room.start(ctx, len(a.all)+1, func(at site) ([]string, error) {
		words, err := a.server.command(at)
		return a.contender.command(a.o, a.server, words), err
	})
	if err != nil {
		return nil, err
	}
	a.all, a.replicas = append(a.all, p), append(a.replicas, p)
	if a.server.probed {
		go a.probe(ctx, p)
	}
	return p, a.balancer.add(p)
}

// rollout replaces one replica after the other.
func (a *arena) rollout(ctx context.Context) error {
	for _, lag := range a.lags {
		if err := pauseFor(ctx, a.o.scale.of(warm)); err != nil {
			return err
		}
		began := time.Now()
		if _, err := a.grow(ctx); err != nil {
			return err
		}
		ready := time.Since(began)
		old := a.replicas[0]
		a.replicas = a.replicas[1:]
		s, err := a.stop(ctx, old, lag)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", a.Contender, a.Server, err)
		}
		a.Stops = append(a.Stops, s)
		a.RolloutS += (ready.Seconds()) + s.StopMS/1000
	}
	// Requests in flight now were in flight at the last stop.
	return pauseFor(ctx, a.o.scale.of(warm))
}

func pauseFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *arena) close() {
	for _, p := range a.all {
		p.close()
	}
}
