package observe

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// Sampler takes samples of the traffic on a goroutine of its own: a sample takes longer
// the more connections there are.
type Sampler struct {
	observer
	cfg          Config
	out          chan Snapshot // holds the newest snapshot only
	slowed       atomic.Bool   // the hold has ended
	tracker      *traffic.Tracker
	snapshot     Snapshot
	published    string    // the last trouble published as a warning
	scanned      time.Time // when the listeners were found
	lastServedAt time.Time // when there was a listener or a connection last; zero: never
}

// lead is how long before the hold's end its last look begins, at least; and safe
// that of one before it, since on a busy machine the last may come too late.
const (
	lastSampleLead  = 5 * time.Millisecond
	spareSampleLead = 50 * time.Millisecond
)

// burstInterval is how soon ends are heard of where there are many.
const burstInterval = 25 * time.Millisecond

// afterHoldInterval is the pause between looks when the hold has ended.
const afterHoldInterval = time.Second

// Start takes samples from now on, until the process ends. Each snapshot is sent to out,
// which has room for one, in place of one that was not received.
func Start(cfg Config, out chan Snapshot) *Sampler {
	s := newSampler(cfg)
	s.out = out
	go s.run()
	return s
}

func newSampler(cfg Config) *Sampler {
	return &Sampler{observer: newObserver(&cfg), cfg: cfg, tracker: traffic.New(cfg.Traffic, cfg.Start)}
}

func newObserver(cfg *Config) observer {
	return observer{wholePIDNamespace: cfg.WholePIDNamespace, health: cfg.Health, filtered: cfg.filtered()}
}

// SlowDown has samples taken less often: the hold has ended, and they are for the report
// alone.
func (s *Sampler) SlowDown() { s.slowed.Store(true) }

func (s *Sampler) run() {
	for {
		s.scan(time.Now())
		began := time.Now()
		s.snapshot.Began, s.snapshot.State = began, s.sample(began)
		s.snapshot.PathsPresent = present(s.cfg.WaitGone)
		s.publish()
		s.snapshot.PreviousTook = time.Since(began)
		s.wait(time.Now().Add(s.pause(began)))
	}
}

// scan finds the listeners, at the first sample and every Config.Rescan.
func (s *Sampler) scan(now time.Time) {
	switch {
	case s.scanned.IsZero():
	case s.cfg.Rescan == 0 || now.Sub(s.scanned) < s.cfg.Rescan:
		return
	default:
		s.close()
		s.observer = newObserver(&s.cfg)
	}
	s.open(s.cfg.Ports)
	s.scanned = now
}

// present are those of paths that are there.
func present(paths []string) (left []string) {
	for _, path := range paths {
		if alive.Present(path) {
			left = append(left, path)
		}
	}
	return left
}

// publish sends the newest snapshot to the loop. If the loop has not taken the previous
// one, that one is dropped; its warning is carried over.
func (s *Sampler) publish() {
	now := &s.snapshot
	now.Traffic, now.Verdict = s.tracker.Summary(), s.tracker.Verdict()
	if s.cfg.TopPeers > 0 {
		now.Peers = s.tracker.Peers(s.cfg.TopPeers)
	}
	now.Listeners = Listeners{Method: s.scope.Method, TCP: s.scope.Ports, UDP: s.scope.UDP, Unix: s.scope.Unix}
	now.Observer, now.Trouble = s.name, s.trouble
	if s.trouble != s.published {
		now.Warning, s.published = s.trouble, s.trouble
	}
	select {
	case missed := <-s.out:
		if now.Warning == "" {
			now.Warning = missed.Warning
		}
	default:
	}
	s.out <- *now
	now.Warning = ""
	s.cfg.Wake()
}

// pause is until the next look. One is taken when the floor has passed, and two
// just before the hold ends whatever happens.
func (s *Sampler) pause(began time.Time) time.Duration {
	now := time.Now()
	took := now.Sub(began)
	pause := s.cfg.Traffic.Poll
	if s.slowed.Load() {
		pause = afterHoldInterval
	}
	if s.count > manySockets {
		pause = max(pause, 10*took)
	}
	for _, at := range [...]time.Duration{s.cfg.Floor, s.cfg.Ceiling - 2*took - spareSampleLead, s.cfg.Ceiling - 2*took - lastSampleLead} {
		if left := s.cfg.Start.Add(at).Sub(now); left > 0 {
			pause = min(pause, left)
		}
	}
	return pause
}

// rest waits until then, and hears of ends meanwhile: at once where there are few, so
// that it is known when they were, and every now and then in a rush. It waits in the
// kernel: Go's timers would need a thread to look at them.
func (s *Sampler) wait(until time.Time) {
	for left := time.Until(until); left > 0; left = time.Until(until) {
		var told []unix.PollFd
		switch {
		case s.events == nil:
		case s.bursting:
			left = min(left, burstInterval)
		default:
			told = []unix.PollFd{{Fd: int32(s.events.FD()), Events: unix.POLLIN}}
		}
		limit := unix.NsecToTimespec(int64(left))
		unix.Ppoll(told, &limit, nil)
		s.hear(time.Now(), s.tracker)
	}
}

// look takes one look, and says what it means to the hold.
func (s *Sampler) sample(now time.Time) stop.TrafficState {
	if len(s.scope.Ports) == 0 {
		s.count = 0
		s.tracker.Begin(now) // what was open before a rescan is gone
		s.tracker.End(s.scope.Complete)
		return s.portless()
	}
	if !s.observer.sample(now, s.tracker) {
		return stop.Unobservable
	}
	v, until := s.tracker.Verdict(), s.cfg.Until
	switch {
	case s.cfg.DetectServerGone && s.serverGone(now, v):
		return stop.ServerGone
	case v.Stuck:
		return stop.Hung
	case until == stop.Settled && v.Settled, until == stop.Quiet && v.Quiet, until == stop.Drained && v.Drained:
		return stop.ConditionMet
	}
	return stop.Busy
}

// portless is for a container without TCP listeners, as far as one could look.
// Behind a Unix socket there is nothing to be seen but silence.
func (s *Sampler) portless() stop.TrafficState {
	switch {
	case s.scope.NoListener():
		return stop.NoListeners
	case !s.scope.Complete:
		return stop.Unobservable
	case len(s.scope.UDP) > 0:
		return stop.UDPOnly
	}
	return stop.ConditionMet
}

// deserted reports whether the server that there was is gone, which a hook is not
// told of. One that is started anew has the time of silence for it.
func (s *Sampler) serverGone(now time.Time, v traffic.Verdict) bool {
	if !v.NoSockets {
		s.lastServedAt = now
	}
	return !s.lastServedAt.IsZero() && now.Sub(s.lastServedAt) >= s.cfg.Traffic.QuietFor
}
