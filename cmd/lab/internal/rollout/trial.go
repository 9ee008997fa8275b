package rollout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// trial is one rollout: the replicas are replaced one after the other, and each stop meets
// another lag.
type trial struct {
	Contender  string `json:"contender"`
	Server     string `json:"server"`
	Repetition int    `json:"repetition"`

	Stops     []*stop `json:"stops"`
	Discarded int     `json:"discarded"`       // runs in which the machine stood still
	Stalled   bool    `json:"stalled"`         // in the last run too
	Cells     []cell  `json:"cells,omitempty"` // of the demo, from the first request on

	contender *contender
	server    *server
	lags      []drawn
	seed      uint64

	mu   sync.Mutex // the screen shows trials while they are played
	load *sender
	over bool
}

// stop is the outcome of stopping one replica.
type stop struct {
	drawn
	StopMS      float64           `json:"stop_ms"` // from the stop signal to the exit
	Killed      bool              `json:"killed"`  // at the end of the grace period
	Requests    int               `json:"requests"`
	Failed      map[load.Kind]int `json:"failed,omitempty"`
	Lost        int               `json:"lost"` // long-lived connections
	Reports     []report          `json:"reports,omitempty"`
	Connections []connection      `json:"connections,omitempty"` // of the built-in balancer

	began time.Time
}

// connection has the times of a connection from the stop on, in milliseconds.
type connection struct {
	FromMS int64 `json:"from_ms"`
	ToMS   int64 `json:"to_ms"`
}

// plan returns every trial in the order of play: repetition by repetition, and drawn
// within, so that a busy time of the machine does not meet one contender alone.
func plan(o *options) ([]*trial, error) {
	random := rand.New(rand.NewPCG(o.seed, 1<<32))
	contenders, servers := contenders(), servers()
	var all []*trial
	for n := range o.repeat {
		from := len(all)
		for i := range contenders {
			for j := range servers {
				c, s := &contenders[i], &servers[j]
				if c.plays(s.scene) && o.selects(c, s) {
					all = append(all, &trial{Contender: c.name, Server: s.name, Repetition: n, contender: c, server: s,
						lags: drawLags(s.scene.lags(), o.seed, n, j, o.scale), seed: o.seed + uint64(n)})
				}
			}
		}
		if o.onLoopback() {
			continue // all at once, in the order of the rows
		}
		part := all[from:]
		random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		// Long trials first, or the last long trial would be played alone.
		slices.SortStableFunc(part, func(a, b *trial) int { return a.speed() - b.speed() })
	}
	if len(all) == 0 {
		return nil, errors.New("nothing has such a name")
	}
	return all, nil
}

func (t *trial) speed() int {
	if t.server.has("websocket") || t.server.scene == kept && t.contender.holds() {
		return 0
	}
	return 1
}

// runAll plays the trials of scene after scene, so many at a time, and returns the first
// error. The losses of clients that never let go are a matter of milliseconds, and the
// processors shall be free then: a quarter as many are played.
func runAll(ctx context.Context, o *options, trials []*trial) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for _, s := range allScenes {
		jobs := o.jobs
		if s == kept {
			jobs = max(1, jobs/4)
		}
		var running sync.WaitGroup
		slots := make(chan bool, jobs)
		for _, t := range trials {
			if t.server.scene != s {
				continue
			}
			slots <- true
			running.Go(func() {
				if err := t.settle(ctx, o); err != nil {
					fail(err)
				}
				<-slots
			})
			if !o.onLoopback() {
				pauseFor(ctx, 100*time.Millisecond) // not all at once, or trials would stay in step
			}
		}
		running.Wait()
	}
	return context.Cause(ctx)
}

// attempts is how often a trial is played on a machine that stands still.
const attempts = 4

// settle plays a trial, and again if the machine stood still, whatever the result.
func (t *trial) settle(ctx context.Context, o *options) error {
	for {
		if err := t.run(ctx, o); err != nil {
			return fmt.Errorf("%s, %s: %w", t.Contender, t.Server, err)
		}
		// The machine stood still for so long that the shortest --quiet-for may have passed
		// without a request: the silence was real. A hold never ends by the silence of
		// long-lived connections.
		t.Stalled = !t.server.has("websocket") && t.load.late > o.scale.of(600*time.Millisecond)
		if !t.Stalled || t.Discarded == attempts-1 {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.over = true
			return nil
		}
		t.Discarded++
	}
}

// ended reports whether the trial has been played.
func (t *trial) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// run plays the trial once.
func (t *trial) run(ctx context.Context, o *options) error {
	t.Stops = nil
	b, err := t.balance(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	a := &arena{trial: t, o: o, balancer: b}
	defer a.close()
	for range len(t.lags) + 1 {
		if err := a.grow(ctx); err != nil {
			return err
		}
	}
	l := &sender{addr: b.addr(), server: t.server, scale: o.scale, seed: t.seed, began: time.Now()}
	if k, ok := b.(*kubeProxy); ok {
		l.pick = k.pick
	}
	t.mu.Lock()
	t.load = l
	t.mu.Unlock()
	loaded, unload := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		l.run(loaded)
		close(ended)
	}()
	err = a.rollout(ctx)
	unload()
	<-ended
	t.tally(l)
	return err
}

// tally gives each result to the stop in whose time the request ended.
func (t *trial) tally(l *sender) {
	for _, r := range l.results {
		for i, s := range t.Stops {
			if !r.at.Before(s.began) && (i == len(t.Stops)-1 || r.at.Before(t.Stops[i+1].began)) {
				s.count(r)
			}
		}
	}
	if t.server.scene == demo {
		t.Cells = l.cells()
	}
}

func (s *stop) count(r result) {
	switch r.kind {
	case lost:
		s.Lost++
		return
	case load.Answered:
	default:
		if s.Failed == nil {
			s.Failed = map[load.Kind]int{}
		}
		s.Failed[r.kind]++
	}
	s.Requests++
}

// arena has the processes of a trial.
type arena struct {
	*trial
	o        *options
	balancer balancer
	replicas []*replica // the next to be stopped first
	all      []*replica
}

// grow starts a replica and adds it to the balancer.
func (a *arena) grow(ctx context.Context) error {
	r, err := a.start(ctx)
	if err != nil {
		return err
	}
	a.replicas = append(a.replicas, r)
	if a.server.has("probed") {
		go a.probe(ctx, r)
	}
	return a.balancer.add(r)
}

func (a *arena) close() {
	for _, r := range a.all {
		r.close()
	}
}

// rollout replaces one replica after the other. A new replica is there before each stop.
func (a *arena) rollout(ctx context.Context) error {
	warm := a.o.scale.of(a.server.scene.warm())
	for i, lag := range a.lags {
		if i > 0 {
			if err := a.grow(ctx); err != nil {
				return err
			}
		}
		if err := pauseFor(ctx, warm); err != nil {
			return err
		}
		old := a.replicas[0]
		a.replicas = a.replicas[1:]
		s, err := a.stop(ctx, old, lag)
		if err != nil {
			return err
		}
		a.Stops = append(a.Stops, s)
	}
	// Requests in flight now were in flight at the last stop.
	return pauseFor(ctx, warm)
}

// stop stops a replica. The clock of the lag starts with the stop signal. stop returns when
// the replica is gone and removed from the balancer.
func (a *arena) stop(ctx context.Context, old *replica, lag drawn) (*stop, error) {
	select {
	case <-old.gone:
		return nil, fmt.Errorf("a replica ended before the stop: %s", &old.stderr)
	default:
	}
	defer context.AfterFunc(ctx, func() { old.cmd.Process.Kill() })()
	s := &stop{drawn: lag, began: time.Now()}
	removed, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- a.remove(ctx, old, s.began, lag)
		close(removed)
	}()
	// The grace period is not scaled: lameduck needs its last second.
	timer := time.AfterFunc(a.server.grace, func() { old.cmd.Process.Kill() })
	go a.signal(old, removed)
	<-old.gone
	s.Killed = !timer.Stop()
	err := <-failed
	s.StopMS = ms(old.at.Sub(s.began))
	s.Reports = reports(old.stderr.String())
	if b, ok := a.balancer.(*builtIn); ok && a.server.scene == anatomy {
		s.Connections = b.connections(old.addr, s.began)
	}
	return s, err
}

// signal stops a replica as the contender does. removed is closed when the balancer has
// removed the replica.
func (a *arena) signal(old *replica, removed <-chan struct{}) {
	if a.contender.name == oracle {
		<-removed
		old.cmd.Process.Signal(a.server.graceful)
		return
	}
	select {
	case <-time.After(a.o.scale.of(a.contender.sleep)):
		old.cmd.Process.Signal(syscall.SIGTERM)
	case <-old.gone:
	}
}

// remove removes a replica from the balancer, late.
func (a *arena) remove(ctx context.Context, old *replica, began time.Time, lag drawn) error {
	if k, ok := a.balancer.(*kubeProxy); ok && a.server.has("stragglers") {
		pauseFor(ctx, time.Until(began.Add(lag.most)))
		k.removeSoon(old)
	}
	if err := pauseFor(ctx, time.Until(began.Add(lag.Lag))); err != nil {
		return err
	}
	return a.balancer.remove(old)
}

// connections returns the connections to a replica, with times from the stop on.
func (b *builtIn) connections(addr string, stop time.Time) (all []connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.conns[addr] {
		all = append(all, connection{s.from.Sub(stop).Milliseconds(), s.to.Sub(stop).Milliseconds()})
	}
	return all
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
