package watch

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/cost"
	"github.com/lameduck-init/lameduck/shim/internal/ledger"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The intervals of samples: as long as the server listens, and after its end, where each reset has
// its time by the sample that counts it.
const (
	watchInterval = 250 * time.Millisecond
	endedInterval = 100 * time.Millisecond
)

// manySockets is the number of sockets above which samples are less frequent.
const manySockets = 10_000

// sample is what a sample shows.
type sample struct {
	traffic.Sample
	began             time.Time
	cost              cost.Result
	observer, trouble string // see observe.Snapshot
	deaf              bool   // the server is PID 1, and the kernel keeps TERM from it for lack of a handler
	fault             any    // of lameduck's own, which ends the sampler
}

// sampler takes samples until the process ends.
type sampler struct {
	cfg      observe.Config
	observer *observe.Observer
	traffic  *traffic.Tracker
	cost     *cost.Tracker
	out      chan sample
	looked   bool // for a handler of the server
	latest   sample
}

// newSampler returns a sampler of what counts from start on.
func newSampler(p *plan.Plan, start time.Time, out chan sample) *sampler {
	s := &sampler{out: out, traffic: traffic.New(p.Traffic), cost: cost.New()}
	s.cfg = observe.Config{Start: start, Traffic: p.Traffic, Ports: p.CountPorts, EveryPort: true}
	s.cfg.Traffic.Poll = cost.LateEvent - endedInterval // after that the event of a missing connection is lost
	return s
}

func (s *sampler) run() {
	defer func() {
		s.out <- sample{fault: recover()}
		sigcatch.Wake()
	}()
	for {
		began := time.Now()
		if s.observer == nil {
			s.observer = observe.Open(&s.cfg)
		} else {
			s.observer.FindLate()
		}
		s.latest.began = time.Now()
		_ = s.observer.Sample(s.latest.began, s.cost.NeedsTimeWait(), s.judge)
		if !s.looked && len(s.latest.cost.Listening) > 0 {
			s.looked = true
			signals := new(proc.Processes).Signals(1)
			handled := signals.Caught | signals.Blocked // it may wait for what it blocks
			s.latest.deaf = s.observer.PID1Serves() && !handled.Has(sig.TERM)
		}
		s.latest.observer = s.observer.Name()
		s.latest.trouble = s.observer.Trouble()
		took := time.Since(began)
		s.out <- s.latest
		sigcatch.Wake()
		s.observer.Wait(time.Now().Add(s.pause(took)))
	}
}

func (s *sampler) judge(next *ledger.Sample) {
	s.latest.Sample = s.traffic.Judge(next, s.cfg.Traffic.QuietFor)
	s.latest.cost = s.cost.Judge(next, s.latest.Patterns)
}

// pause returns the time until the next sample, after a sample that took so long.
func (s *sampler) pause(took time.Duration) time.Duration {
	pause := watchInterval
	if len(s.latest.cost.Ends) > 0 {
		pause = endedInterval
	}
	if s.observer.Sockets() > manySockets {
		pause = max(pause, 10*took)
	}
	return pause
}
