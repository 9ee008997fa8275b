package shim

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/health"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// loop is the one goroutine that waits, decides, acts, signals and reaps.
type loop struct {
	host    host
	cfg     *Config
	plan    plan
	machine *stop.Machine

	health    *health.Listener // nil: none
	aliveFile *alive.File      // nil: none
	children  children
	sampler   sampler // nil: sampling has not begun
	samples   samples

	shellDropped  sig.Signal // a signal that the command, a shell, does not forward; 0: none
	shellChecked  sig.Signal // the next signal, if checkShell need not be called; else 0
	otherProgram  string     // what the command runs instead of its preset's server; "": that server, or not known
	termlogWarned bool       // the user knows that the termination log cannot be written

	done bool
	code int
}

// children are the processes that the loop has started.
type children struct {
	command      int          // PID of the command; 0: not running
	group        int          // process group of the command, which may outlive the command
	onStop       int          // PID of --on-stop; 0: not running
	onStopFailed bool         // --on-stop could not be started
	onStopUntil  time.Time    // when --on-stop ended, or was killed; zero: not yet
	sentTERM     map[int]bool // descendants that were sent TERM, by PID, as of the last termDescendants
}

// samples are the newest samples of the traffic.
type samples struct {
	thawedAt  time.Time         // when a freeze past the end of the hold was noticed
	inHold    observe.Snapshot  // the last sample of the hold
	afterHold *observe.Snapshot // the last sample since the hold; nil: none
}

func newLoop(cfg *Config, p plan, h host) *loop {
	return &loop{host: h, cfg: cfg, plan: p, machine: stop.New(p.stop)}
}

// takePending handles the signals that arrived during the start.
func (l *loop) takePending() {
	for {
		s := l.host.next(time.Now())
		if s == 0 {
			return
		}
		l.onSignal(s)
	}
}

// serve handles signals, deadlines and samples until the machine says to exit. Without a
// deadline, waiting costs nothing.
func (l *loop) serve() {
	for !l.done {
		deadline, ok := l.machine.Deadline()
		switch {
		case ok && l.wasFrozen(deadline):
			deadline = l.samples.thawedAt.Add(thawWait)
		case ok && !time.Now().Before(deadline):
			l.dispatch(stop.Event{Kind: stop.Tick})
			deadline = time.Now() // pending signals are handled before the next deadline
		}
		if s := l.host.next(deadline); s != 0 {
			l.onSignal(s)
		}
		select {
		case s := <-l.host.snapshots:
			l.onSample(s)
			l.sampler.Continue(l.machine.Searching())
		default:
		}
	}
}

// A loop that misses a deadline by more than freezeThreshold was stopped, by the freezer
// of its control group for example. The loop then waits up to thawWait for a new sample of
// the traffic.
const (
	freezeThreshold = time.Second
	thawWait        = time.Second
)

// wasFrozen reports whether the end of the hold passed during a freeze and the traffic has
// not been sampled since. The last sample before the freeze is out of date, and the report
// would give wrong counts for the moment of the signal.
func (l *loop) wasFrozen(holdEnd time.Time) bool {
	now := time.Now()
	if l.machine.State() != stop.Holding || now.Sub(holdEnd) < freezeThreshold || l.samples.inHold.Began.After(holdEnd) {
		return false
	}
	if l.samples.thawedAt.IsZero() {
		l.samples.thawedAt = now
	}
	return now.Sub(l.samples.thawedAt) < thawWait
}

// maxSampleAge is how old a sample that ends the hold may be, besides the time that
// sampling takes: lameduck may have been stopped, or starved, since.
const maxSampleAge = 100 * time.Millisecond

// maxLullAge is how old a sample that shows a lull may be.
const maxLullAge = 20 * time.Millisecond

// onSample tells the machine about a sample of the traffic.
func (l *loop) onSample(s observe.Snapshot) {
	if l.machine.State() != stop.Holding {
		l.samples.afterHold = &s
		return
	}
	l.warnUnobservable(&s)
	if s.State == stop.ConditionMet && time.Since(s.Began) > 2*s.PreviousTook+maxSampleAge {
		return
	}
	l.samples.inHold = s
	s.Requests.Stale = s.Requests.Stale || time.Since(s.Began) > maxLullAge
	l.dispatch(stop.Event{Kind: stop.Sampled, Traffic: s.State, Requests: s.Requests, Waiting: len(s.PathsPresent) > 0})
}

// warnUnobservable logs, once, why the traffic cannot be observed in the best way. The
// level is Debug for a plain delay, which does not depend on the traffic.
func (l *loop) warnUnobservable(s *observe.Snapshot) {
	adaptive := l.plan.stop.Gate.Until != Elapsed
	level := Debug
	if adaptive {
		level = Warn
	}
	switch {
	case s.Warning == "":
	case s.Observer == observe.None && adaptive:
		l.log(level, "cannot observe the traffic, so the hold lasts to its ceiling: %s", s.Warning)
	case s.Observer == observe.None:
		l.log(level, "cannot observe the traffic: %s", s.Warning)
	default:
		l.log(level, "observing the traffic through %s: %s", s.Observer, s.Warning)
	}
	if adaptive && s.State != l.samples.inHold.State {
		l.warnUnseen(s)
	}
}

// warnUnseen logs that traffic of no listener of the container can be observed.
func (l *loop) warnUnseen(s *observe.Snapshot) {
	lasts := stop.FormatDuration(l.plan.stop.Gate.UnseenFloor)
	switch s.State {
	case stop.UDPOnly:
		l.log(Warn, "all listeners are UDP (%s), and UDP traffic cannot be observed: the hold lasts %s; see --delay",
			report.PortList(s.Listeners.UDP), lasts)
	case stop.Unseen:
		kinds := strings.Join(unseen(&s.Listeners), " and ")
		l.log(Warn, "the container has no TCP listener, and other traffic (%s) cannot be observed: the hold lasts %s; "+
			"see --delay", kinds, lasts)
	}
}

// onSignal tells the machine about a signal, unless lameduck itself caused the signal.
func (l *loop) onSignal(s sig.Signal) {
	switch {
	case s == sig.CHLD:
		l.reapAll()
	case !l.host.selfInflicted(s):
		if l.plan.server.auto && preset.Signals().Has(s) {
			l.identify()
		}
		l.dispatch(stop.Event{Kind: stop.SignalArrived, Signal: s, Outside: l.host.fromOutside(s)})
	}
}

// identify looks for the preset of the program that the command runs by now: entrypoint
// scripts execute the server at some time after the start.
func (l *loop) identify() {
	if !l.plan.server.auto || l.children.command == 0 {
		return
	}
	exe, argv := l.host.processes.Program(l.children.command)
	if found := preset.Match(exe, argv); found != nil {
		l.machine.UsePreset(l.plan.identified(found))
		l.log(Info, "the command is recognized as %s", found.Name)
	}
}

// reapAll reaps every process that has ended, and handles what became of the children.
func (l *loop) reapAll() {
	orphans := false
	pid, status := l.host.processes.Reap()
	for ; pid > 0; pid, status = l.host.processes.Reap() {
		switch {
		case pid == l.children.command:
			l.dispatch(l.commandEvent(status))
		case pid == l.children.onStop:
			l.onStopStatus(status)
		case status.Stopped == 0 && !status.Continued:
			orphans = true
			l.logReaped(pid)
		}
	}
	if orphans {
		l.dispatch(stop.Event{Kind: stop.OrphanReaped})
	}
	if pid == proc.None && l.machine.State() == stop.Lingering {
		l.dispatch(stop.Event{Kind: stop.NoChildren})
	}
}

// commandEvent returns the event for a new status of the command.
func (l *loop) commandEvent(status proc.Status) stop.Event {
	switch {
	case status.Stopped != 0:
		return stop.Event{Kind: stop.CommandStopped, Signal: status.Stopped}
	case status.Continued:
		return stop.Event{Kind: stop.CommandContinued}
	}
	l.children.command = 0 // the kernel may reuse the PID
	return stop.Event{Kind: stop.CommandExited, Signal: status.Signal, Code: status.Code}
}

// onStopStatus handles a new status of --on-stop.
func (l *loop) onStopStatus(status proc.Status) {
	switch {
	case status.Stopped != 0 || status.Continued:
		return
	case !l.children.onStopUntil.IsZero(): // killed by lameduck, which has said so
	case status.Signal != 0:
		l.log(Warn, "--on-stop was killed by %v", status.Signal)
	case status.Code != 0:
		l.log(Warn, "--on-stop exited %d", status.Code)
	}
	l.children.onStop = 0
	if l.children.onStopUntil.IsZero() {
		l.children.onStopUntil = time.Now()
	}
	l.dispatch(stop.Event{Kind: stop.OnStopEnded})
}

func (l *loop) logReaped(pid int) {
	level := Debug
	if l.cfg.WarnReaped {
		level = Warn
	}
	l.log(level, "reaped orphan %d", pid)
}

// dispatch hands an event to the machine and performs the machine's actions.
func (l *loop) dispatch(e stop.Event) {
	before := l.machine.State()
	l.log(Debug, "%v: %v", before, e)
	if before == stop.Holding && !l.machine.Searching() {
		l.identify() // an entrypoint script may execute the server as late as now
	}
	searched := l.machine.Searching()
	for _, a := range l.machine.Handle(time.Now(), e) {
		l.act(a)
	}
	switch searches := l.machine.Searching(); {
	case searched && !searches:
		l.shellChecked = 0 // the command may execute another program by the next search
	case !searched && searches:
		l.log(Debug, "searching for a lull")
		l.checkShell(l.machine.Record().Steps.FirstSignal(0))
	}
	if l.children.onStopFailed {
		l.children.onStopFailed = false
		l.dispatch(stop.Event{Kind: stop.OnStopEnded})
	}
	if before == stop.Holding && l.machine.State() != stop.Holding {
		l.onHoldEnd()
	}
}

// onHoldEnd slows the samples down, which serve only the report from now on, and writes the
// report into the termination log if the stop signal has been sent.
func (l *loop) onHoldEnd() {
	if l.machine.Record().Lull.Found {
		l.log(Debug, "the sample that shows a lull has an age of %v", time.Since(l.samples.inHold.Began))
	}
	l.sampler.SlowDown()
	if l.machine.State() == stop.Stopping {
		s := l.stopReport()
		l.writeTermlog(s, s.Progress())
	}
}
