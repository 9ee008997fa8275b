package rollout

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// trial is one rollout: the replicas are replaced one after the other, and each stop meets
// another lag.
type trial struct {
	Contender string `json:"contender"`
	Server    string `json:"server"`

	Stops   []*stop `json:"stops"`
	Stalled bool    `json:"stalled"`         // the machine stood still in all attempts
	Cells   []int   `json:"cells,omitempty"` // failed requests of the demo, by column

	contender *contender
	server    *server
	lags      []time.Duration
	load      *sender
	over      atomic.Bool
	o         *options
	balancer  balancer
	replicas  []*replica // all that were started
}

// stop is the outcome of stopping one replica.
type stop struct {
	Lag      time.Duration     `json:"lag_ns"`
	StopMS   float64           `json:"stop_ms"` // from the stop signal to the exit
	Killed   bool              `json:"killed"`  // at the end of the grace period
	Requests int               `json:"requests"`
	Failed   map[load.Kind]int `json:"failed,omitempty"`
	Reports  []stage.Report    `json:"reports,omitempty"`
	Watch    *stage.Report     `json:"watch,omitempty"`

	began time.Time
}

// Losses returns the number of requests that failed.
func (s *stop) Losses() int { return load.Failed(s.Failed) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// plan returns every trial in the order of play: the contenders of a server one after the other, so
// that a busy time of the machine does not meet one contender alone.
func (o *options) plan() (all findings) {
	selected := must.Get(regexp.Compile(o.run))
	for n := range o.repeat {
		for i, s := range servers {
			for _, c := range contenders {
				name := fmt.Sprintf("%s: %s | %s", s.Scene, s.Name, c.Name)
				if o.demo != (s.Scene == demo) || !slices.Contains(c.Scenes, s.Scene) ||
					!selected.MatchString(name) || o.quick && !c.claimed(s) {
					continue
				}
				lags := drawLags(s.Scene, n, i)
				all = append(all, &trial{Contender: c.Name, Server: s.Name, contender: c, server: s,
					lags: lags[:min(o.stops, len(lags))], o: o, load: &sender{server: s, seed: uint64(n)}})
			}
		}
	}
	must.Be(len(all) > 0, "nothing has such a name")
	return all
}

// lags has the distributions of lags.txt.
var lags = rows[struct {
	Name             string
	From, To, Seldom time.Duration
	Scenes           []string
}]("lags.txt")

// longestLag bounds the lags of rollouts.
const longestLag = 10 * time.Second

// drawLags draws a lag, the time from the stop signal to the removal from the balancer, from each
// distribution of a scene in lags.txt, which take turns to be the first: in a quick run, whose
// rollouts have two, each comes as often. The lags depend on the repetition and the server alone, so
// that every contender meets the same lags.
func drawLags(in string, repetition, server int) (all []time.Duration) {
	r := rand.New(rand.NewPCG(uint64(repetition), uint64(server)))
	for _, l := range lags {
		if !slices.Contains(l.Scenes, in) {
			continue
		}
		from, to := l.From, l.To
		if l.Seldom > 0 && r.IntN(3) == 0 {
			from, to = l.Seldom, l.Seldom*3/2
		}
		all = append(all, from+time.Duration(r.Float64()*float64(to-from)))
	}
	first := (repetition + server + 2) % len(all) // so the slow server loses enough for a share of it
	return append(all[first:], all[:first]...)
}

// playAll plays the trials of scene after scene, and returns the first error. A trial during which the
// machine stood still is played again after the others, whatever the result, and half as many at a time.
func (o *options) playAll(ctx context.Context, trials findings) error {
	const attempts = 4
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	for _, s := range scenes {
		var losing sync.Mutex
		now := slices.DeleteFunc(slices.Clone(trials), func(t *trial) bool { return t.server.Scene != s.Name })
		for attempt := range attempts {
			stage.Beside(ctx, now, max(1, s.Jobs>>attempt), 100*time.Millisecond, func(t *trial) {
				if t.loses() { // in a network where watch counts all resets
					losing.Lock()
					defer losing.Unlock()
				}
				if err := must.Try(func() { t.run(ctx) }); err != nil {
					fail(fmt.Errorf("%s, %s: %w", t.Contender, t.Server, err))
				}
				// The machine stood still for so long that the shortest --quiet-for, 1 s, may have passed
				// without a request: the silence was real. A hold never ends by the silence of
				// long-lived connections.
				t.Stalled = !t.server.has("websocket") && t.load.Count().LateMS > 600
				if !t.Stalled || attempt == attempts-1 {
					t.over.Store(true)
					fmt.Fprint(os.Stderr, o.dot)
				}
			})
			now = slices.DeleteFunc(now, func(t *trial) bool { return !t.Stalled })
		}
	}
	return context.Cause(ctx)
}

// loses reports whether a trial of the demo is to lose requests.
func (t *trial) loses() bool {
	return t.o.dir == "" && !t.contender.holds() && t.contender.Sleep < t.lags[0]
}

// run plays the trial once.
func (t *trial) run(ctx context.Context) {
	t.Stops, t.replicas = nil, nil
	t.balancer = t.balance(ctx)
	defer t.balancer.Close()
	defer func() {
		for _, r := range t.replicas {
			r.Close()
			r.watch.Close()
		}
	}()
	for range t.o.replicas {
		t.balancer.set(t.start(ctx), true)
	}
	t.startWatch(ctx, t.replicas[0])
	t.load.Reset()
	loaded, unload := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { t.load.run(loaded, t.balancer.pick) })
	defer func() {
		unload()
		running.Wait()
		t.tally()
		t.endWatch()
	}()
	for i, lag := range t.lags {
		if i > 0 { // a new replica is there before each stop
			t.balancer.set(t.start(ctx), true)
			t.startWatch(ctx, t.replicas[i])
		}
		pause(ctx, warm)
		t.endWatch()
		t.Stops = append(t.Stops, t.stop(ctx, t.replicas[i], lag))
	}
	// Requests in flight now were in flight at the last stop.
	pause(ctx, warm)
}

// stop stops a replica as the contender does. The clock of the lag starts with the stop signal.
// stop returns when the replica is gone and removed from the balancer.
func (t *trial) stop(ctx context.Context, old *replica, lag time.Duration) *stop {
	old.MustRun()
	s := &stop{Lag: lag, Failed: map[load.Kind]int{}, began: time.Now()}
	if old.watch != nil {
		old.watch.Process.Signal(syscall.SIGTERM)
	}
	if t.contender.Name != oracle {
		time.AfterFunc(t.contender.Sleep, func() { old.Process.Signal(syscall.SIGTERM) })
	}
	kill := time.AfterFunc(t.server.Grace, func() { old.Process.Kill() })
	pause(ctx, time.Until(s.began.Add(s.Lag)))
	t.balancer.set(old, false)
	if t.contender.Name == oracle {
		old.Process.Signal(t.server.Graceful)
	}
	<-old.Gone
	s.Killed = !kill.Stop()
	s.StopMS = ms(old.Ended.Sub(s.began))
	s.Reports = stage.Reports(old.Said())
	return s
}

// tally gives each result to the stop in whose time the request ended.
func (t *trial) tally() {
	for _, r := range t.load.Results() {
		var in *stop
		for _, s := range t.Stops {
			if !r.At.Before(s.began) {
				in = s
			}
		}
		if in == nil {
			continue
		}
		in.Requests++
		if r.Kind != load.Answered {
			in.Failed[r.Kind]++
		}
	}
	if t.server.Scene == demo {
		t.Cells = t.load.cells()
	}
}
