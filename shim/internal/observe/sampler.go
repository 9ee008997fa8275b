package observe

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/closer"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/tcp"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// The last sample of a hold begins lastSampleLead before the end at the latest. Another
// sample is taken spareSampleLead before the end: on a busy machine the last may be late.
const (
	lastSampleLead  = 5 * time.Millisecond
	spareSampleLead = 50 * time.Millisecond
)

// searchInterval is the shortest time between two samples while the loop searches for a lull.
const searchInterval = time.Millisecond

// closeInterval is the shortest time between two samples while kept connections are watched and
// closed, each of which may be idle for a moment only.
const closeInterval = 25 * time.Millisecond

// fewSockets is a number of sockets that is listed in a millisecond.
const fewSockets = 500

// closeGap is the time between two connections that are closed: clients that connect again
// all at once could be too much for a server.
const closeGap = 200 * time.Microsecond

// afterHoldInterval is the interval of samples after the hold.
const afterHoldInterval = time.Second

// Sampler takes samples of the traffic on a goroutine of its own: a sample takes longer
// the more connections there are. The hold and package watch use it.
type Sampler struct {
	// Set by the receiver of a snapshot, before Continue.
	Interval time.Duration // of samples
	TimeWait bool          // the next sample needs the sockets in TIME_WAIT

	// Between the receiver and the sampler.
	out      chan Snapshot
	handled  chan bool    // the receiver has handled a snapshot; true: it searches for a lull
	slowed   atomic.Bool  // the hold has ended
	urlState atomic.Value // of askURL: see Snapshot.URLState

	// Of the goroutine that takes samples.
	cfg       Config
	searching bool // the latest of handled
	observer  *Observer
	tracker   *traffic.Tracker
	snapshot  Snapshot
	asker     *letgo.Asker
	closer    closer.Closer
	questions []*question // to servers, not answered yet
	watching  bool        // servers are asked, or clients will soon be

	incompleteAt time.Time // the latest sample that was
}

// Start takes samples from now on, until the process ends. Each snapshot is sent to out,
// which has room for one, and handled before the next sample: the receiver calls Continue.
func Start(cfg Config, out chan Snapshot) *Sampler {
	s := newSampler(cfg, out)
	if cfg.WaitURL != nil {
		s.urlState.Store(notAnswered)
		go s.askURL()
	}
	go s.run()
	return s
}

func newSampler(cfg Config, out chan Snapshot) *Sampler {
	if cfg.Own == nil {
		cfg.Own = health.NewConns()
	}
	return &Sampler{
		Interval: cfg.Traffic.Poll, cfg: cfg, out: out, handled: make(chan bool, 1), tracker: traffic.New(cfg.Traffic),
		asker:  letgo.New(cfg.Letgo),
		closer: closer.Closer{WholePIDNamespace: cfg.WholePIDNamespace},
	}
}

// Continue tells the Sampler that a snapshot has been handled, and whether a search for a
// lull is under way: samples are then taken back to back.
func (s *Sampler) Continue(searching bool) { s.handled <- searching }

// SlowDown makes samples less frequent: the hold has ended, and samples are for the report
// alone.
func (s *Sampler) SlowDown() { s.slowed.Store(true) }

// run takes samples. A fault of lameduck's own leaves the hold blind, and does not end the command.
// While the goroutine waits for Continue, the loop gets the only processor of Go's scheduler at once: a
// system call in this thread would keep it for milliseconds.
func (s *Sampler) run() {
	defer func() {
		fault := recover()
		blind := Snapshot{
			Observation: report.Observation{Observer: report.NoSource, PathsPresent: s.cfg.WaitGone},
			Began:       time.Now(), State: stop.Unobservable, Fault: fault,
			Trouble: fmt.Sprintf("a fault of lameduck's own, %v; please report it", fault),
		}
		if s.cfg.WaitURL != nil {
			blind.URLState = "is no longer asked"
		}
		s.out <- blind
		s.cfg.Wake()
		<-s.handled
	}()
	for {
		began := time.Now()
		if s.observer == nil {
			s.observer = Open(&s.cfg)
		} else if !s.slowed.Load() && !s.searching {
			s.observer.FindLate()
		}
		s.take(time.Now())
		now := time.Now() // the time that the receiver takes is part of the pause
		took := now.Sub(began)
		s.out <- s.snapshot
		s.snapshot.PreviousTook = time.Since(s.snapshot.Began)
		s.cfg.Wake()
		s.searching = <-s.handled
		s.watching = s.snapshot.CloseTrouble == "" && (len(s.questions) > 0 || s.asker.Watching())
		next := now.Add(s.pause(now, took))
		if !s.searching {
			s.ask(next)
		}
		s.observer.events.wait(next)
	}
}

// ask asks the clients of kept connections to choose again, each at its moment, until the next sample is
// due. After a refusal samples are no longer frequent, which would show that a connection is used: no other is
// closed.
func (s *Sampler) ask(next time.Time) {
	for s.watching {
		began := time.Now()
		conns := s.asker.ToAsk()
		for _, k := range conns {
			if s.slowed.Load() || !time.Now().Before(next) { // the stop signal is about to be sent, or a sample due
				return
			}
			asked, err := s.closer.Ask(&k.Socket, k.Word(), func(now *tcp.Socket) bool { return s.asker.MayAsk(k, now) })
			switch {
			case err != nil:
				s.snapshot.CloseTrouble = err.Error()
				return
			case asked != nil:
				s.asker.NoteAsked(k, asked)
				s.observer.events.wait(time.Now().Add(closeGap))
			}
		}
		pause := searchInterval
		if len(conns) > fewSockets {
			pause = max(pause, 10*time.Since(began))
		}
		due := time.Now().Add(pause)
		if len(conns) == 0 || !due.Before(next) {
			return
		}
		s.observer.events.wait(due)
	}
}

// urlInterval is the time between two requests for Config.WaitURL, and urlTimeout how long an
// answer may take.
const (
	urlInterval = time.Second
	urlTimeout  = 10 * time.Second
)

const notAnswered = "has not answered"

// askURL asks for Config.WaitURL until there is nothing to wait for, or the hold is over.
func (s *Sampler) askURL() {
	for !s.slowed.Load() {
		status, err := s.cfg.Own.Ask(s.cfg.WaitURL, urlTimeout)
		switch {
		case status == 200 || errors.Is(err, unix.ECONNREFUSED):
			s.urlState.Store("")
			return
		case status == 0:
			s.urlState.Store(notAnswered)
		default:
			s.urlState.Store(fmt.Sprint("answers ", status))
		}
		time.Sleep(urlInterval)
	}
}

// take takes the next snapshot.
func (s *Sampler) take(now time.Time) {
	next := &s.snapshot
	next.Began = now
	next.Ledger = s.observer.Sample(now, s.TimeWait || s.asker.AwaitsClients())
	next.Sample = s.tracker.Judge(next.Ledger, s.asker.Silence())
	if next.Incomplete {
		s.incompleteAt = now
	}
	if len(s.cfg.Letgo.Goaway) > 0 {
		s.asker.Update(next.Ledger, next.NoneNewFor)
	}
	next.State = s.state(now)
	s.askServers(now)
	next.Observer = s.observer.Name()
	next.Trouble = s.observer.source.trouble()
	next.Asked = s.asker.Figures()
	switch {
	case next.Observer != report.SockDiag: // which alone shows requests
		next.Requests = stop.Requests{Stale: true}
	case next.Incomplete:
		next.Requests.Stale = true // nothing new
	default:
		next.Requests = stop.Requests{Active: next.Active, AtRisk: next.AtRisk}
	}
	next.Scope = s.observer.scope
	next.ScopeName = string(next.Scope.Method)
	next.UDPPorts = next.Scope.UDP
	next.Unseen = next.Scope.Unseen
	next.LatePorts = s.observer.latePorts
	next.PathsPresent = nil
	for _, path := range s.cfg.WaitGone {
		if alive.Present(path) {
			next.PathsPresent = append(next.PathsPresent, path)
		}
	}
	next.URLState, _ = s.urlState.Load().(string)
}

// state returns what a sample and its verdict mean for the hold. Without a TCP listener only
// datagrams can be observed. A hook is not told that the server has ended; one that restarts has QuietFor
// to listen again.
func (s *Sampler) state(now time.Time) stop.TrafficState {
	found := &s.observer.scope
	hasDatagrams := s.observer.countsDatagrams()
	isObserved := hasDatagrams || len(found.Ports) > 0
	until := s.cfg.Gate.Until
	v := &s.snapshot
	isGone := v.NoSockets && !v.ServedAt.IsZero() &&
		min(now.Sub(v.ServedAt), now.Sub(s.incompleteAt)) >= s.cfg.Traffic.QuietFor
	switch {
	case hasDatagrams && len(found.Unseen) > 0 && now.Sub(s.cfg.Start) < s.cfg.Gate.UnseenFloor:
		return stop.Busy
	case !isObserved && found.NoListener():
		return stop.NoListeners
	case !isObserved && found.Complete && len(found.UDP) > 0:
		return stop.UDPOnly
	case !isObserved && found.Complete:
		return stop.Unseen
	case !isObserved, s.observer.source.failed != nil:
		return stop.Unobservable
	case s.cfg.DetectServerGone && isGone:
		return stop.ServerGone
	case v.Stuck:
		return stop.Hung
	case v.Settled && until == stop.Settled, v.Quiet && until == stop.Quiet, v.Drained && until == stop.Drained:
		return stop.ConditionMet
	case v.Kept && until == stop.Quiet:
		return stop.OnlyKept
	}
	return stop.Busy
}

// pause returns the time from now until the next sample, after a sample that took so long. Samples
// are taken when the floor has passed, when silence may have lasted long enough, and just
// before the hold ends in any case.
func (s *Sampler) pause(now time.Time, took time.Duration) time.Duration {
	cfg := &s.cfg
	pause := s.Interval
	switch {
	case s.slowed.Load():
		pause = afterHoldInterval
	case s.searching:
		return max(searchInterval, took)
	}
	if s.watching && !s.slowed.Load() {
		pause = min(pause, closeInterval)
	}
	if s.observer.sockets > fewSockets { // else what took long was to get a processor
		pause = max(pause, 10*took)
	}
	held := now.Sub(cfg.Start)
	end := cfg.Gate.MaxHold() - 2*took
	quietFor := cfg.Traffic.QuietFor
	lastNew := s.snapshot.LastNew.Sub(cfg.Start)
	lastByte := s.snapshot.LastByte.Sub(cfg.Start)
	for _, at := range [...]time.Duration{
		cfg.Gate.Floor, cfg.Gate.LullStart(), quietFor, lastNew + quietFor, lastByte + quietFor,
		end - spareSampleLead, end - lastSampleLead,
	} {
		if at > held {
			pause = min(pause, at-held)
		}
	}
	return pause
}
