package observe

import (
	"sync/atomic"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The last sample of a hold begins lastSampleLead before the end at the latest. Another
// sample is taken spareSampleLead before the end: on a busy machine the last may be late.
const (
	lastSampleLead  = 5 * time.Millisecond
	spareSampleLead = 50 * time.Millisecond
)

// afterHoldInterval is the interval of samples after the hold.
const afterHoldInterval = time.Second

// Sampler takes samples of the traffic on a goroutine of its own: a sample takes longer
// the more connections there are.
type Sampler struct {
	cfg          Config
	out          chan Snapshot // has the newest snapshot only
	slowed       atomic.Bool   // the hold has ended
	observer     *observer
	tracker      *traffic.Tracker
	snapshot     Snapshot
	search       search
	published    string    // the trouble published last as a warning
	scannedAt    time.Time // when the listeners were found; zero: not yet
	lastServedAt time.Time // when there was a listener or a connection last; zero: never
}

// Start takes samples from now on, until the process ends. Each snapshot is sent to out,
// which has room for one, in place of a snapshot that was not received.
func Start(cfg Config, out chan Snapshot) *Sampler {
	s := newSampler(cfg, out)
	go s.run()
	return s
}

func newSampler(cfg Config, out chan Snapshot) *Sampler {
	return &Sampler{
		cfg: cfg, out: out, tracker: traffic.New(cfg.Traffic, cfg.Start),
		search: search{continued: make(chan struct{}, 1)},
	}
}

// SlowDown makes samples less frequent: the hold has ended, and samples are for the report
// alone.
func (s *Sampler) SlowDown() { s.slowed.Store(true) }

func (s *Sampler) run() {
	for {
		s.scan(time.Now())
		began := time.Now()
		s.take(began)
		matters := s.mayMatter()
		s.publish()
		s.snapshot.PreviousTook = time.Since(began)
		if matters {
			<-s.search.continued
		}
		s.observer.events.wait(time.Now().Add(s.pause(s.snapshot.PreviousTook)))
	}
}

// scan finds the listeners: all of them before the first sample and every Config.Rescan,
// and new ones in between as long as the hold lasts.
func (s *Sampler) scan(now time.Time) {
	switch {
	case s.observer == nil:
	case s.cfg.Rescan == 0 || now.Sub(s.scannedAt) < s.cfg.Rescan:
		if !s.slowed.Load() && !s.search.underWay.Load() {
			s.observer.findLate(now)
		}
		return
	default:
		s.observer.close()
	}
	s.observer = newObserver(&s.cfg)
	s.scannedAt = now
}

// take takes the sample of the next snapshot.
func (s *Sampler) take(now time.Time) {
	s.snapshot.Began = now
	s.snapshot.State = s.sample(now)
	s.snapshot.Requests = s.requests()
}

// sample takes a sample, and returns what the sample means for the hold.
func (s *Sampler) sample(now time.Time) stop.TrafficState {
	if len(s.observer.scope.Ports) == 0 {
		s.observer.sockets = 0
		s.tracker.Begin(now) // connections from before a rescan are gone
		s.tracker.End(traffic.Rest{Incomplete: !s.observer.scope.Complete})
		s.snapshot.Traffic = s.tracker.Summary()
		return s.withoutPorts()
	}
	err := s.observer.sample(now, s.tracker) // an error means that no source is left
	v := s.tracker.Verdict()
	s.snapshot.Traffic = s.tracker.Summary()
	s.observer.opens.explain(s.snapshot.Traffic.Accepted)
	if err != nil {
		return stop.Unobservable
	}
	return s.state(now, v)
}

// state returns what a verdict means for the hold.
func (s *Sampler) state(now time.Time, v traffic.Verdict) stop.TrafficState {
	switch {
	case s.cfg.DetectServerGone && s.serverGone(now, v):
		return stop.ServerGone
	case v.Stuck:
		return stop.Hung
	case isMet(s.cfg.Until, v):
		return stop.ConditionMet
	case v.Kept && s.cfg.Until == stop.Quiet:
		return stop.OnlyKept
	}
	return stop.Busy
}

// isMet reports whether the condition of an adaptive hold is met.
func isMet(until stop.Reason, v traffic.Verdict) bool {
	switch until {
	case stop.Settled:
		return v.Settled
	case stop.Quiet:
		return v.Quiet
	case stop.Drained:
		return v.Drained
	}
	return false
}

// withoutPorts returns the state of a container without a TCP listener, as far as that is
// known. The traffic of other listeners cannot be observed.
func (s *Sampler) withoutPorts() stop.TrafficState {
	found := &s.observer.scope
	switch {
	case found.NoListener():
		return stop.NoListeners
	case !found.Complete:
		return stop.Unobservable
	case len(found.UDP) > 0:
		return stop.UDPOnly
	}
	return stop.Unseen
}

// serverGone reports whether the server has ended, of which a hook is not told. A server
// that restarts has QuietFor to listen again.
func (s *Sampler) serverGone(now time.Time, v traffic.Verdict) bool {
	if !v.NoSockets {
		s.lastServedAt = now
	}
	return !s.lastServedAt.IsZero() && now.Sub(s.lastServedAt) >= s.cfg.Traffic.QuietFor
}

// publish sends the newest snapshot to the loop. If the loop has not taken the previous
// one, that one is dropped; its warning is carried over.
func (s *Sampler) publish() {
	s.describe(&s.snapshot)
	next := s.snapshot
	s.search.forget()
	if next.Trouble != s.published {
		s.published = next.Trouble
		next.Warning = next.Trouble
	}
	select {
	case dropped := <-s.out:
		if next.Warning == "" {
			next.Warning = dropped.Warning
		}
	default:
	}
	s.out <- next
	s.cfg.Wake()
}

// describe sets the parts of a snapshot that the tracker and the observer know.
func (s *Sampler) describe(next *Snapshot) {
	next.Verdict = s.tracker.Verdict()
	if s.cfg.TopPeers > 0 {
		next.Peers = s.tracker.Peers(s.cfg.TopPeers)
	}
	found := &s.observer.scope
	next.Listeners = Listeners{
		Method: found.Method, TCP: found.Ports, Late: s.observer.late.ports,
		UDP: found.UDP, Unix: found.Unix, Unseen: found.Unseen,
	}
	next.Observer = s.observer.source.name
	next.Trouble = s.observer.source.trouble
	next.PathsPresent = nil
	for _, path := range s.cfg.WaitGone {
		if alive.Present(path) {
			next.PathsPresent = append(next.PathsPresent, path)
		}
	}
}

// pause returns the time until the next sample, after a sample that took so long. Samples
// are taken when the floor has passed, when silence may have lasted long enough, and just
// before the hold ends in any case.
func (s *Sampler) pause(took time.Duration) time.Duration {
	now := time.Now()
	pause := s.cfg.Traffic.Poll
	switch {
	case s.slowed.Load():
		pause = afterHoldInterval
	case s.search.underWay.Load():
		return max(searchInterval, took)
	}
	if s.observer.sockets > manySockets {
		pause = max(pause, 10*took)
	}
	end := s.cfg.Ceiling - 2*took
	t := &s.snapshot.Traffic
	quietFor := s.cfg.Traffic.QuietFor
	for _, at := range [...]time.Time{
		s.cfg.Start.Add(s.cfg.Floor), s.cfg.Start.Add(s.cfg.LullStart),
		s.cfg.Start.Add(quietFor), t.LastNew.Add(quietFor), t.LastByte.Add(quietFor),
		s.cfg.Start.Add(end - spareSampleLead), s.cfg.Start.Add(end - lastSampleLead),
	} {
		if left := at.Sub(now); left > 0 {
			pause = min(pause, left)
		}
	}
	return pause
}
