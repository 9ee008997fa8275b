package rollout

import (
	"context"
	"time"
)

// trial is one rollout: the replicas are replaced one after the other, and each stop meets
// another lag.
type trial struct {
	Contender  string `json:"contender"`
	Server     string `json:"server"`
	Repetition int    `json:"repetition"`
	outcome

	contender *contender
	server    *server
	lags      []drawn
	seed      uint64
}

// outcome is the result of a trial.
type outcome struct {
	Stops     []*stop `json:"stops"`
	Discarded int     `json:"discarded"`  // runs in which the machine stood still
	LateMS    float64 `json:"late_ms"`    // the longest delay of a request behind the plan
	SlowestMS float64 `json:"slowest_ms"` // the longest time of an answer beyond the thinking time
	RolloutS  float64 `json:"rollout_s"`  // starts and stops of all replicas
	Requests  int     `json:"requests"`
}

// run plays the trial once.
func (t *trial) run(ctx context.Context, o *options, p *room) error {
	t.Stops = nil
	b, err := t.balance(ctx, p)
	if err != nil {
		return err
	}
	defer b.close()
	a := &arena{trial: t, o: o, room: p, balancer: b}
	defer a.close()
	for range t.lags {
		if _, err := a.grow(ctx); err != nil {
			return err
		}
	}
	l := &sender{addr: b.addr(), server: t.server, scale: o.scale, rate: o.rate, seed: t.seed}
	if k, ok := b.(*kubeProxy); ok {
		l.pick = k.pick
	}
	loaded, unload := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		l.run(loaded)
		close(done)
	}()
	err = a.rollout(ctx)
	unload()
	<-done
	t.tally(l)
	return err
}

// balance opens the balancer of the trial.
func (t *trial) balance(ctx context.Context, p *room) (balancer, error) {
	if t.server.balancer == "kube-proxy" {
		return openKubeProxy(t.server, t.seed), nil
	}
	return p.balance(ctx, t.server, 2*len(t.lags))
}

// stalled reports whether the machine stood still for so long that the shortest --quiet-for
// may have passed without a request: the silence was real then. A hold never ends by the
// silence of long-lived connections.
func (t *trial) stalled(by scale) bool {
	return !t.server.longLived && max(t.LateMS, t.SlowestMS) > 0.6*ms(by.of(time.Second))
}

// tally gives each result to the stop in whose time the request ended.
func (t *trial) tally(l *sender) {
	t.LateMS, t.SlowestMS = ms(l.late), ms(l.slowest)
	t.Requests = 0
	for _, r := range l.results {
		if r.kind != lost {
			t.Requests++
		}
		for i, s := range t.Stops {
			if !r.at.Before(s.began) && (i == len(t.Stops)-1 || r.at.Before(t.Stops[i+1].began)) {
				s.count(r)
			}
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
