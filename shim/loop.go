//go:build linux

package shim

import (
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/letgo"
	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/preset"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/report"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// loop is the one goroutine that waits, decides, acts, signals and reaps.
type loop struct {
	host host
	plan *plan.Plan // written by newLoop and identify

	// Policy: handle passes on events, and the actions answer with pending ones.
	machine *stop.Machine
	history *stop.History
	pending []stop.Event
	stop    report.Stop // what is known about the stop

	// Processes: written at their start, and by reap.
	command int         // PID of the command; 0: not running
	group   int         // process group of the command, which may outlive the command
	ended   proc.Status // the end of the command
	onStop  int         // PID of --on-stop; 0: not running

	// Signals: written where they arrive and where they are sent.
	arrived  sig.Signal // and was not passed on so far; 0: none
	stopSent bool       // a signal of the stop was sent

	// Samples of the hold: written by onSample and awaitsSample.
	sampler  sampler          // nil: sampling has not begun
	sample   observe.Snapshot // the last one
	sampleBy time.Time        // until when one is awaited after a freeze

	said map[string]bool // by sayOnce
}

func newLoop(p *plan.Plan, h host) *loop {
	return &loop{
		host: h, plan: p, said: map[string]bool{},
		machine: stop.New(p.Stop), history: stop.NewHistory(p.Stop.Rewrites, p.Hook, h.Tracer),
	}
}

// serve handles signals, deadlines, samples and answers until the sequence is over. Without a
// deadline, waiting costs nothing.
func (l *loop) serve() {
	for l.machine.State() != stop.Gone {
		fault("next")
		select {
		case s := <-l.host.snapshots:
			l.onSample(s)
			l.sampler.Continue(l.machine.Searching())
		case err := <-l.host.answers:
			if err != nil {
				l.endOnStop(": %v: %v", l.plan.OnStop.Request, err)
			} else {
				l.endOnStop("")
			}
			l.dispatch()
		default: // both wake next, too, and come before a deadline
			deadline := l.handleDeadline(time.Now())
			awaited := [2]int{l.command, l.onStop} // as long as the command runs, no orphan's end changes anything
			if l.plan.WarnReaped {
				awaited = [2]int{}
			}
			l.onSignal(l.host.next(deadline, awaited))
		}
	}
}

// handleDeadline handles a deadline that has passed, and returns the next one; zero: none. Pending signals
// are handled between two.
func (l *loop) handleDeadline(now time.Time) time.Time {
	deadline, ok := l.machine.Deadline()
	switch {
	case l.awaitsSample(now):
		return l.sampleBy
	case ok && !now.Before(deadline):
		l.dispatch(stop.Event{Kind: stop.Tick})
	}
	return deadline
}

// A loop that misses a deadline by more than freezeTime was stopped, by the freezer of its control
// group for example. The loop then waits up to as long for a new sample of the traffic.
const freezeTime = time.Second

// awaitsSample notes a freeze past the end of the hold, and reports whether a sample of the traffic is
// awaited, up to sampleBy. The last sample before the freeze is out of date, and the report would give
// wrong counts for the moment of the signal.
func (l *loop) awaitsSample(now time.Time) bool {
	end := l.machine.HoldEnd()
	if end.IsZero() || now.Sub(end) < freezeTime || l.sample.Began.After(end) {
		return false
	}
	if now.Sub(l.sampleBy) > freezeTime { // the first freeze, or frozen again
		l.sampleBy = now.Add(freezeTime)
	}
	return now.Before(l.sampleBy)
}

// maxSampleAge is how old a sample that ends the hold may be, besides the time that
// sampling takes: lameduck may have been stopped, or starved, since.
const maxSampleAge = 100 * time.Millisecond

// maxLullAge is how old a sample that shows a lull may be.
const maxLullAge = 20 * time.Millisecond

// onSample tells the machine about a sample of the traffic.
func (l *loop) onSample(s observe.Snapshot) {
	l.stop.Latest = s.Observation
	if l.machine.State() != stop.Holding {
		return
	}
	age := time.Since(s.Began)
	isOld := age > 2*s.PreviousTook+maxSampleAge
	if isOld && (s.State == stop.ConditionMet || l.awaitsSample(time.Now())) {
		return
	}
	if l.plan.Until != Elapsed {
		l.warnUnobservable(&s)
		l.warnOfFlags(&s)
	}
	l.sample = s
	l.stop.InHold = l.stop.Latest
	s.Requests.Stale = s.Requests.Stale || age > maxLullAge
	waiting := len(s.PathsPresent) > 0 || s.URLState != ""
	l.dispatch(stop.Event{Kind: stop.Sampled, Traffic: s.State, Requests: s.Requests, Waiting: waiting})
}

// warnUnobservable warns, once of each trouble, that an adaptive hold cannot observe the traffic in
// the best way, or that traffic of no listener of the container can be observed.
func (l *loop) warnUnobservable(s *observe.Snapshot) {
	switch {
	case s.Trouble == "":
	case s.Observer == report.NoSource:
		l.warnOnce("cannot observe the traffic, so the hold lasts to its ceiling: %s", s.Trouble)
	default:
		l.warnOnce("observing the traffic through %s: %s", s.Observer, s.Trouble)
	}
	lasts := l.plan.Stop.Gate.UnseenFloor
	switch {
	case s.State == l.sample.State: // the ports may be others, as those of clients
	case s.State == stop.UDPOnly:
		l.warnOnce("all listeners are UDP (%s), and UDP traffic cannot be observed: the hold lasts %s; "+
			"see --delay (LAMEDUCK_DELAY)", report.PortList(s.UDPPorts), lasts)
	case s.State == stop.Unseen:
		l.warnOnce("the container has no TCP listener, and other traffic (%s) cannot be observed: the hold lasts %s; "+
			"see --delay (LAMEDUCK_DELAY)", strings.Join(s.Unseen, " and "), lasts)
	}
}

// warnOfFlags warns of flags of an adaptive hold that do nothing, and says what the servers speak that were asked
// for --goaway since the last sample.
func (l *loop) warnOfFlags(s *observe.Snapshot) {
	if unserved := s.Scope.Unserved; len(unserved) > 0 {
		l.warnOnce("nothing listens on %s: every port of the container counts",
			plan.Flag("count-port", report.PortList(unserved)))
	}
	for _, port := range l.plan.Goaway {
		if port != letgo.Auto && s.Scope.Complete && !s.Scope.Ports.Has(port) {
			l.warnOnce("%s is no port that counts: no GOAWAY is sent there", plan.Flag("goaway", port))
		}
	}
	if s.CloseTrouble != "" {
		var without []string
		if l.plan.CloseIdle {
			without = append(without, "--close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection")
		}
		if len(l.plan.Goaway) > 0 {
			without = append(without, "--goaway (LAMEDUCK_GOAWAY) sends nothing")
		}
		l.warnOnce("%s: %s", strings.Join(without, ", "), s.CloseTrouble)
	}
	for _, server := range s.Asked.Answered {
		l.sayOnce(report.Spoken(server, l.plan.Goaway))
	}
}

// onSignal tells the machine about a signal, or about what was reaped.
func (l *loop) onSignal(s sig.Signal) {
	switch s {
	case 0:
	case sig.CHLD:
		l.reap()
		l.dispatch()
	default:
		l.arrived = s
		_, isOutside := l.host.sender(s)
		l.dispatch(stop.Event{Kind: stop.SignalArrived, Signal: s, Outside: isOutside})
		l.arrived = 0
	}
}

// identify looks for the preset of the program that the command runs by now, if the preset is
// to be found: entrypoint scripts execute the server at some time after the start. At a stop signal
// that the command, such as a shell, does not handle, the server may also be below the command.
func (l *loop) identify(stopSignal sig.Signal) {
	if l.plan.Preset != AutoPreset || l.plan.Server.Name != "" || l.command == 0 {
		return
	}
	found := preset.Match(l.host.Program(l.command, true))
	if found == nil && stopSignal != 0 && !l.grouped() {
		l.look()
		if below, ok := l.history.Server(stopSignal); ok {
			found = preset.Named(below.Server)
		}
	}
	if found == nil {
		return
	}
	l.log(Info, "the command is recognized as %s", found.Name)
	recognized, err := l.plan.Recognized(found)
	if err != nil {
		l.log(Error, "the preset %s is not used: %v", found.Name, err)
		return
	}
	l.plan = recognized
	l.machine.Replan(recognized.Stop)
	l.warnOfPlan()
}

// changes are the events for what becomes of the command.
var changes = [...]stop.Kind{stop.CommandExited, stop.CommandStopped, stop.CommandContinued}

// reap reaps every process that has ended, and tells the machine what became of the children.
func (l *loop) reap() {
	orphans := false
	pid, status := l.host.Reap()
	for ; pid > 0; pid, status = l.host.Reap() {
		switch {
		case pid == l.command:
			if status.Change == proc.Ended {
				l.command, l.ended = 0, status // the kernel may reuse the PID
			}
			l.queue(stop.Event{Kind: changes[status.Change], Signal: status.Signal, Code: status.Code})
		case status.Change != proc.Ended:
		case pid == l.onStop:
			l.onStop = 0
			switch {
			case status.Signal != 0:
				l.endOnStop(" was killed by %v", status.Signal)
			case status.Code != 0:
				l.endOnStop(" exited %d", status.Code)
			default:
				l.endOnStop("")
			}
		default:
			orphans = true
			if l.plan.WarnReaped {
				l.log(Warn, "reaped orphan %d", pid)
			}
		}
	}
	if orphans {
		l.queue(stop.Event{Kind: stop.OrphanReaped})
	}
	if pid == proc.None {
		l.queue(stop.Event{Kind: stop.NoChildren})
	}
}

// queue has an event handled when the actions of the present one are done.
func (l *loop) queue(e stop.Event) { l.pending = append(l.pending, e) }

// dispatch handles events, and then those that the actions result in: it hands each to the machine and performs
// the machine's actions. Only the loop dispatches, no action does.
func (l *loop) dispatch(events ...stop.Event) {
	l.pending = append(l.pending, events...)
	for i := 0; i < len(l.pending); i++ { //nolint:intrange // grows meanwhile
		e, before := l.pending[i], l.machine.State()
		l.log(Debug, "%v: %v", before, e)
		fault(e)
		switch mayStop := l.plan.Stop.StopSignals.Has(e.Signal) || preset.Stops(e.Signal); {
		case mayStop:
			l.identify(e.Signal)
		case before == stop.Holding:
			l.identify(0) // an entrypoint script may execute the server as late as now
		}
		if e.Kind == stop.NoChildren {
			l.noteAtWork(nil)
		}
		for _, a := range l.machine.Handle(time.Now(), e) {
			l.act(a)
		}
		if before == stop.Holding && l.machine.State() != stop.Holding {
			l.sampler.SlowDown() // the rest of the samples are for the report
			if l.machine.State() == stop.Stopping {
				l.writeTermlog(l.stopReport().Conclusion())
			}
		}
	}
	l.pending = l.pending[:0]
}
