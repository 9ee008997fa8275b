package shim

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
	"github.com/lameduck-init/lameduck/shim/internal/traffic"
)

// sight is what was seen at one look.
type sight struct {
	began    time.Time     // when it was taken,
	usual    time.Duration // and how long the one before took
	look     stop.Look
	traffic  traffic.Summary
	scope    scope.Method // how the listeners were found
	datagram scope.Ports  // what they listen on beside TCP
	observer string       // who looks; "": there is nothing to see
	trouble  string       // why it is not the best observer; once
	waits    []string     // for these paths to go, which are still there
}

// watcher looks at the traffic during a hold, on a goroutine of its own: a look
// takes as long as there are connections. It only carries what it sees.
type watcher struct {
	observer
	plan      *plan
	start     time.Time
	out       chan sight  // the newest alone
	eased     atomic.Bool // the hold has ended
	judge     *traffic.Tracker
	now       sight
	told      string    // the trouble that was told of
	peopledAt time.Time // when there was a listener last, or a connection; zero: never
}

// lead is how long before the hold's end its last look begins, at least; and safe
// that of one before it, since on a busy machine the last may come too late.
const (
	lead = 5 * time.Millisecond
	safe = 50 * time.Millisecond
)

// rushed is how soon ends are heard of where there are many.
const rushed = 25 * time.Millisecond

// idly is the pause between looks when the hold has ended.
const idly = time.Second

// watchTraffic begins to look, and goes on as long as we do.
func watchTraffic(p *plan, start time.Time, out chan sight) *watcher {
	w := newWatcher(p, start)
	w.out = out
	go w.run()
	return w
}

func newWatcher(p *plan, start time.Time) *watcher {
	return &watcher{
		observer: observer{everyone: p.hook || p.pid1, health: p.health, partial: p.partial()},
		plan:     p, start: start, judge: traffic.New(p.traffic, start),
	}
}

// partial reports whether not all connections count, whoever they come from.
func (p *plan) partial() bool {
	t := &p.traffic
	return p.health != nil || t.IgnoreProbes || len(t.IgnorePorts)+len(t.IgnorePeers) > 0
}

func (w *watcher) ease() { w.eased.Store(true) }

func (w *watcher) run() {
	w.open(w.plan.ports)
	for {
		began := time.Now()
		w.now.began, w.now.look = began, w.look(began)
		w.now.waits = present(w.plan.waits)
		w.tell()
		w.now.usual = time.Since(began)
		w.rest(time.Now().Add(w.pause(began)))
	}
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

// tell gives the newest sight to the loop, in place of one that it has not taken.
func (w *watcher) tell() {
	w.now.traffic = w.judge.Summary()
	w.now.scope, w.now.datagram, w.now.observer = w.scope.Method, w.scope.UDP, w.name
	if w.trouble != w.told {
		w.now.trouble, w.told = w.trouble, w.trouble
	}
	select {
	case missed := <-w.out:
		if w.now.trouble == "" {
			w.now.trouble = missed.trouble
		}
	default:
	}
	w.out <- w.now
	w.now.trouble = ""
	sig.Wake()
}

// pause is until the next look. One is taken when the floor has passed, and two
// just before the hold ends whatever happens.
func (w *watcher) pause(began time.Time) time.Duration {
	now := time.Now()
	took := now.Sub(began)
	pause := w.plan.traffic.Poll
	if w.eased.Load() {
		pause = idly
	}
	if w.count > crowd {
		pause = max(pause, 10*took)
	}
	gate := &w.plan.stop.Gate
	for _, at := range [...]time.Duration{gate.Floor, gate.Longest() - 2*took - safe, gate.Longest() - 2*took - lead} {
		if left := w.start.Add(at).Sub(now); left > 0 {
			pause = min(pause, left)
		}
	}
	return pause
}

// rest waits until then, and hears of ends meanwhile: at once where there are few, so
// that it is known when they were, and every now and then in a rush. It waits in the
// kernel: Go's timers would need a thread to look at them.
func (w *watcher) rest(until time.Time) {
	for left := time.Until(until); left > 0; left = time.Until(until) {
		var told []unix.PollFd
		switch {
		case w.events == nil:
		case w.rush:
			left = min(left, rushed)
		default:
			told = []unix.PollFd{{Fd: int32(w.events.FD()), Events: unix.POLLIN}}
		}
		limit := unix.NsecToTimespec(int64(left))
		unix.Ppoll(told, &limit, nil)
		w.hear(time.Now(), w.judge)
	}
}

// look takes one look, and says what it means to the hold.
func (w *watcher) look(now time.Time) stop.Look {
	if len(w.scope.Ports) == 0 {
		return w.portless()
	}
	if !w.observer.look(now, w.judge) {
		return stop.Blind
	}
	v, until := w.judge.Verdict(), w.plan.stop.Gate.Until
	switch {
	case w.plan.hook && w.deserted(now, v):
		return stop.Deserted
	case v.Stuck:
		return stop.Hung
	case until == stop.Settled && v.Settled, until == stop.Quiet && v.Quiet, until == stop.Drained && v.Drained:
		return stop.Calm
	}
	return stop.Busy
}

// portless is for a container without TCP listeners, as far as one could look.
// Behind a Unix socket there is nothing to be seen but silence.
func (w *watcher) portless() stop.Look {
	switch {
	case w.scope.NoListener():
		return stop.Nobody
	case !w.scope.Complete:
		return stop.Blind
	case len(w.scope.UDP) > 0:
		return stop.Datagrams
	}
	return stop.Calm
}

// deserted reports whether the server that there was is gone, which a hook is not
// told of. One that is started anew has the time of silence for it.
func (w *watcher) deserted(now time.Time, v traffic.Verdict) bool {
	if !v.NoSockets {
		w.peopledAt = now
	}
	return !w.peopledAt.IsZero() && now.Sub(w.peopledAt) >= w.plan.traffic.QuietFor
}
