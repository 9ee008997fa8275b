//go:build linux

package shim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
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
	host    host
	plan    *plan.Plan
	machine *stop.Machine

	aliveFile *alive.File // nil: none

	pending []stop.Event // of the actions, for the machine
	command int          // PID of the command; 0: not running
	group   int          // process group of the command, which may outlive the command
	onStop  int          // PID of --on-stop; 0: not running

	handled    sig.Signal  // arrived, and not passed on so far; 0: none
	stopSignal sig.Signal  // the first of a stop by TERM
	stopSent   bool        // a signal of the stop was sent
	ended      proc.Status // the end of the command

	history *stop.History // of the processes, during a stop
	refused sig.Set       // requests that were not passed on

	sampler  sampler          // nil: sampling has not begun
	sample   observe.Snapshot // the last one of the hold
	trouble  string           // of a sample, as warned last
	thawedAt time.Time        // when a freeze past the end of the hold was noticed

	stop          report.Stop // what is known about the stop
	termlogWarned bool        // the user knows that the termination log cannot be written

	done bool
	code int
}

func newLoop(p *plan.Plan, h host) *loop {
	traces := func(pids []int) (list []stop.Trace) {
		for _, t := range h.Traces(pids) {
			list = append(list, stop.Trace(t))
		}
		return list
	}
	l := &loop{host: h, machine: stop.New(p.Stop), history: stop.NewHistory(p.Stop.Rewrites, p.Hook, traces)}
	l.follow(p)
	return l
}

// follow makes p the plan.
func (l *loop) follow(p *plan.Plan) {
	l.plan = p
	l.stopSignal = p.Stop.ScheduleFor(sig.TERM).FirstSignal(sig.TERM)
}

// serve handles signals, deadlines and samples until the machine says to exit. Without a
// deadline, waiting costs nothing.
func (l *loop) serve() {
	for !l.done {
		deadline, ok := l.machine.Deadline()
		switch {
		case l.wasFrozen(time.Now()):
			deadline = l.thawedAt.Add(thawWait)
		case ok && !time.Now().Before(deadline):
			l.dispatch(stop.Event{Kind: stop.Tick})
			deadline = time.Now() // pending signals are handled before the next deadline
		}
		if s := l.next(deadline); s != 0 {
			l.onSignal(s)
		}
		select {
		case s := <-l.host.snapshots:
			l.onSample(s)
			l.sampler.Continue(l.machine.Searching())
		default:
		}
		select { // not the same select: what comes together wakes the loop once
		case err := <-l.host.answers:
			l.onAnswer(err)
		default:
		}
	}
}

// next waits for a signal until a deadline. As long as the command runs, the end of an orphan
// changes nothing, and is of interest to the log alone.
func (l *loop) next(deadline time.Time) sig.Signal {
	awaited := [2]int{l.command, l.onStop}
	if l.plan.WarnReaped || l.plan.Level >= Debug {
		awaited = [2]int{}
	}
	return l.host.next(deadline, awaited)
}

// A loop that misses a deadline by more than freezeThreshold was stopped, by the freezer of its
// control group for example. The loop then waits up to thawWait for a new sample of the traffic.
const (
	freezeThreshold = time.Second
	thawWait        = time.Second
)

// wasFrozen reports whether the end of the hold passed during a freeze and the traffic has
// not been sampled since. The last sample before the freeze is out of date, and the report
// would give wrong counts for the moment of the signal.
func (l *loop) wasFrozen(now time.Time) bool {
	end := l.machine.HoldEnd()
	if end.IsZero() || now.Sub(end) < freezeThreshold || l.sample.Began.After(end) {
		return false
	}
	if now.Sub(l.thawedAt) > thawWait+freezeThreshold { // the first, or frozen again
		l.thawedAt = now
	}
	return now.Sub(l.thawedAt) < thawWait
}

// maxSampleAge is how old a sample that ends the hold may be, besides the time that
// sampling takes: lameduck may have been stopped, or starved, since.
const maxSampleAge = 100 * time.Millisecond

// maxLullAge is how old a sample that shows a lull may be.
const maxLullAge = 20 * time.Millisecond

// onSample tells the machine about a sample of the traffic.
func (l *loop) onSample(s observe.Snapshot) {
	seen := observation(&s)
	l.stop.Latest = seen
	if l.machine.State() != stop.Holding {
		return
	}
	age := time.Since(s.Began)
	if age > 2*s.PreviousTook+maxSampleAge && (s.State == stop.ConditionMet || l.wasFrozen(time.Now())) {
		return
	}
	l.warnUnobservable(&s, &seen)
	l.sample = s
	l.stop.InHold = seen
	s.Requests.Stale = s.Requests.Stale || age > maxLullAge
	waiting := len(s.PathsPresent) > 0 || s.URLState != ""
	l.dispatch(stop.Event{Kind: stop.Sampled, Traffic: s.State, Requests: s.Requests, Waiting: waiting})
}

// warnUnobservable warns, once of each trouble, that an adaptive hold cannot observe the traffic in
// the best way, or that traffic of no listener of the container can be observed.
func (l *loop) warnUnobservable(s *observe.Snapshot, seen *report.Observation) {
	if l.plan.Until == Elapsed {
		return
	}
	switch {
	case s.Trouble == l.sample.Trouble:
	case s.Trouble == "":
		l.log(Info, "observing the traffic through %s again", observe.SockDiag)
	case s.Trouble == l.trouble:
	case s.Observer == observe.None:
		l.log(Warn, "cannot observe the traffic, so the hold lasts to its ceiling: %s", s.Trouble)
	default:
		l.log(Warn, "observing the traffic through %s: %s", s.Observer, s.Trouble)
	}
	l.trouble = cmp.Or(s.Trouble, l.trouble)
	if unserved := s.Scope.Unserved; len(unserved) > 0 && len(l.sample.Scope.Unserved) == 0 {
		l.log(Warn, "nothing listens on %s: every port of the container counts",
			plan.Flag("count-port", report.PortList(unserved)))
	}
	others := slices.DeleteFunc(slices.Clone(l.plan.Goaway), func(port uint16) bool {
		return port == letgo.Auto || s.Scope.Ports.Has(port)
	})
	if isFirst := l.sample.Began.IsZero(); isFirst && len(others) > 0 && s.Scope.Complete {
		l.log(Warn, "%s is no port that counts: no GOAWAY is sent there", plan.Flag("goaway", report.PortList(others)))
	}
	if s.CloseTrouble != "" && l.sample.CloseTrouble == "" {
		var without []string
		if l.plan.CloseIdle {
			without = append(without, "--close-idle (LAMEDUCK_CLOSE_IDLE) closes no connection")
		}
		if len(l.plan.Goaway) > 0 {
			without = append(without, "--goaway (LAMEDUCK_GOAWAY) sends nothing")
		}
		l.log(Warn, "%s: %s", strings.Join(without, ", "), s.CloseTrouble)
	}
	for i := len(l.sample.Asked.Answered); i < len(s.Asked.Answered); i++ {
		level := Info
		text, isWarning := report.Spoken(s.Asked.Answered[:i+1], l.plan.Goaway)
		if isWarning {
			level = Warn
		}
		if text != "" {
			l.log(level, "%s", text)
		}
	}
	lasts := l.plan.Stop.Gate.UnseenFloor
	switch {
	case s.State == l.sample.State:
	case s.State == stop.UDPOnly:
		l.log(Warn, "all listeners are UDP (%s), and UDP traffic cannot be observed: the hold lasts %s; "+
			"see --delay (LAMEDUCK_DELAY)", report.PortList(seen.UDPPorts), lasts)
	case s.State == stop.Unseen:
		l.log(Warn, "the container has no TCP listener, and other traffic (%s) cannot be observed: the hold lasts %s; "+
			"see --delay (LAMEDUCK_DELAY)", strings.Join(seen.Unseen, " and "), lasts)
	}
}

// onSignal tells the machine about a signal, or about what was reaped.
func (l *loop) onSignal(s sig.Signal) {
	if s == sig.CHLD {
		events := l.reap()
		if n := len(events); n > 0 && events[n-1].Kind == stop.NoChildren {
			l.noteAtWork(nil)
		}
		l.dispatch(events...)
		return
	}
	l.handled = s
	l.dispatch(stop.Event{Kind: stop.SignalArrived, Signal: s, Outside: l.host.fromOutside(s)})
	l.handled = 0
}

// identify looks for the preset of the program that the command runs by now, if the preset is
// to be found: entrypoint scripts execute the server at some time after the start. At a stop signal
// that the command, such as a shell, does not handle, the server may also be below the command.
func (l *loop) identify(stopSignal sig.Signal) {
	if l.plan.Preset != AutoPreset || l.plan.Server != nil || l.command == 0 {
		return
	}
	found := preset.Match(l.host.Program(l.command, true))
	if found == nil && stopSignal != 0 && !l.grouped() {
		l.look()
		if below, ok := l.history.Server(stopSignal); ok {
			found, _ = preset.Named(below.Server)
		}
	}
	if found == nil {
		return
	}
	l.log(Info, "the command is recognized as %s", found.Name)
	before := l.plan.Warnings
	recognized, err := l.plan.Recognized(found)
	if err != nil {
		l.log(Error, "the preset %s is not used: %v", found.Name, err)
		return
	}
	l.follow(recognized)
	l.machine.Replan(l.plan.Stop)
	for _, warning := range l.plan.Warnings {
		if !slices.Contains(before, warning) {
			l.log(Warn, "%s", warning)
		}
	}
}

// reap reaps every process that has ended, and returns what became of the children.
func (l *loop) reap() (events []stop.Event) {
	reaped := Debug
	if l.plan.WarnReaped {
		reaped = Warn
	}
	orphans := false
	pid, status := l.host.Reap()
	for ; pid > 0; pid, status = l.host.Reap() {
		switch {
		case pid == l.command:
			events = append(events, l.commandEvent(status))
		case pid == l.onStop && status.Stopped == 0 && !status.Continued:
			events = append(events, l.onStopEnded(status))
		case status.Stopped == 0 && !status.Continued:
			orphans = true
			l.log(reaped, "reaped orphan %d", pid)
		}
	}
	if orphans {
		events = append(events, stop.Event{Kind: stop.OrphanReaped})
	}
	if pid == proc.None {
		events = append(events, stop.Event{Kind: stop.NoChildren})
	}
	return events
}

// commandEvent returns the event for a new status of the command.
func (l *loop) commandEvent(status proc.Status) stop.Event {
	switch {
	case status.Stopped != 0:
		return stop.Event{Kind: stop.CommandStopped, Signal: status.Stopped}
	case status.Continued:
		return stop.Event{Kind: stop.CommandContinued}
	}
	l.command, l.ended = 0, status // the kernel may reuse the PID
	return stop.Event{Kind: stop.CommandExited, Signal: status.Signal, Code: status.Code}
}

// onStopEnded returns the event for the end of --on-stop.
func (l *loop) onStopEnded(status proc.Status) stop.Event {
	l.onStop = 0
	switch {
	case status.Signal != 0:
		l.endOnStop(" was killed by %v", status.Signal)
	case status.Code != 0:
		l.endOnStop(" exited %d", status.Code)
	default:
		l.endOnStop("")
	}
	return stop.Event{Kind: stop.OnStopEnded}
}

// onAnswer handles the answer to the request of --on-stop.
func (l *loop) onAnswer(err error) {
	if err != nil {
		l.endOnStop(": %v: %v", l.plan.OnStop.Request, err)
	} else {
		l.endOnStop("")
	}
	l.dispatch(stop.Event{Kind: stop.OnStopEnded})
}

// endOnStop notes the end of --on-stop, and warns of a failure, unless lameduck has killed it or given it
// up, and said so.
func (l *loop) endOnStop(failure string, args ...any) {
	if !l.stop.OnStopUntil.IsZero() {
		return
	}
	l.stop.OnStopUntil = time.Now()
	if failure != "" {
		l.log(Warn, "--on-stop (LAMEDUCK_ON_STOP)"+failure, args...)
	}
}

// dispatch handles events, and then those that the actions result in. Only the loop dispatches,
// no action does.
func (l *loop) dispatch(events ...stop.Event) {
	l.pending = append(l.pending, events...)
	for i := 0; i < len(l.pending); i++ { //nolint:intrange // grows meanwhile
		l.handle(l.pending[i])
	}
	l.pending = l.pending[:0]
}

// handle hands an event to the machine and performs the machine's actions.
func (l *loop) handle(e stop.Event) {
	before := l.machine.State()
	searched := l.machine.Searching()
	l.log(Debug, "%v: %v", before, e)
	switch mayStop := l.plan.Stop.StopSignals.Has(e.Signal) || preset.Stops(e.Signal); {
	case e.Kind == stop.SignalArrived && mayStop:
		l.identify(e.Signal)
	case e.Kind == stop.PreStop:
		l.identify(sig.TERM)
	case before == stop.Holding && !searched:
		l.identify(0) // an entrypoint script may execute the server as late as now
	}
	for _, a := range l.machine.Handle(time.Now(), e) {
		l.act(a)
	}
	if !searched && l.machine.Searching() {
		l.log(Debug, "searching for a lull")
	}
	if before == stop.Holding && l.machine.State() != stop.Holding {
		l.sampler.SlowDown() // the rest of the samples are for the report
		if l.machine.State() == stop.Stopping {
			s := l.stopReport()
			l.writeTermlog(s, s.Conclusion())
		}
	}
}
