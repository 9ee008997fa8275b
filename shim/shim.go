package shim

import (
	"os"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/observe"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// StartError is a command that could not be started.
type StartError = proc.StartError

// Stage is the first call of main: where args say that we are the second stage
// of a start, it becomes the command and does not return.
func Stage(args []string) { proc.Stage(args) }

// Environ returns the environment of this process exactly as it was passed,
// duplicates included.
func Environ() []string { return proc.Environ() }

// Run runs the command until it ends, and returns the exit code to leave with:
// the command's own, 128+n where signal n killed it, mapped by ExitCodes. An
// error means that nothing was started; it is a *StartError where that is the
// command's fault.
func Run(cfg Config) (code int, err error) {
	proc.SetAside()
	p, err := cfg.plan(proc.IsTerminal(0), os.Getpid() == 1)
	if err != nil {
		return 0, err
	}
	if len(cfg.OnStop) > 0 {
		p.dir, _ = os.Getwd() // we leave it
	}
	return run(cfg, p, system(&cfg))
}

// loop is the one goroutine that selects, decides, acts, kills and reaps.
type loop struct {
	kernel
	cfg     *Config
	plan    plan
	machine *stop.Machine
	command int          // its pid; 0: it is not running
	hook    int          // the pid of what was run when the stop began; 0: it is not running
	group   int          // its process group, which may outlive it
	termed  map[int]bool // what was left when we looked last, and has had its TERM

	watching bool
	thawed   time.Time         // when a freeze past the end of the hold was noticed
	seen     observe.Snapshot  // at the last look of the hold
	late     *observe.Snapshot // at the last one since
	deaf     sig.Signal        // what the command, a shell, keeps to itself; 0: nothing
	unhooked bool              // what was to run when the stop began could not be started
	mute     bool              // it was said that the termination log cannot be written

	done bool
	code int
}

func run(cfg Config, p plan, k kernel) (int, error) {
	l := &loop{kernel: k, cfg: &cfg, plan: p, machine: stop.New(p.stop)}
	defer l.flush()
	defer l.hide()
	if err := l.begin(); err != nil || l.done {
		return l.code, err
	}
	// From here on nothing is fatal any more: warn and go on.
	l.tell(stop.Event{Kind: stop.CommandStarted})
	l.started()
	l.serve()
	if p.stop.JobControl {
		l.takeBack(l.group)
	}
	return l.code, nil
}

// begin does all that may fail, the start last. A stop signal that has come by
// then keeps the command from being started.
func (l *loop) begin() (err error) {
	if err := l.ready(); err != nil {
		return err
	}
	if err := l.family(); err != nil {
		return err
	}
	if l.drain(); l.done {
		return nil
	}
	if l.cfg.Health != nil {
		if err := l.listen(&l.plan, *l.cfg.Health); err != nil {
			return l.cfg.errorf("--health=%v: %w", l.cfg.Health, err)
		}
	}
	if err := l.show(l.cfg.AliveFile); err != nil {
		return l.cfg.errorf("--alive-file=%s: %w", Quote(l.cfg.AliveFile), err)
	}
	l.command, err = l.start(proc.Command{Argv: l.cfg.Command, Env: l.cfg.Env, Session: l.cfg.Session, SameGroup: l.cfg.SameGroup})
	l.group = l.command
	return err
}

// ready says what is to be warned of, and takes what may later be denied.
func (l *loop) ready() error {
	for _, w := range l.plan.warnings {
		l.log(Warn, "%s", w)
	}
	if err := l.prepare(); err != nil {
		return err
	}
	if err := l.note(""); err != nil {
		return l.cfg.errorf("--termination-log=%s: %w: give a file, or none", Quote(l.cfg.TerminationLog), err)
	}
	return nil
}

// family settles whose children orphans become, and what we hear of our parent.
func (l *loop) family() error {
	if s := l.cfg.ParentDeathSignal; s != 0 {
		if err := l.follow(s); err != nil {
			return l.cfg.errorf("--parent-death-signal=%v: %w", s, err)
		}
	}
	if l.cfg.Subreaper == No {
		return nil
	}
	err := l.adopt()
	if err != nil && l.cfg.Subreaper == Yes {
		return l.cfg.errorf("--subreaper: %w", err)
	}
	if err != nil {
		l.log(Warn, "orphans will not be reaped: we are not PID 1, and cannot become a subreaper: %v", err)
	}
	return nil
}

// drain takes the signals that came while we were starting.
func (l *loop) drain() {
	for s := l.next(time.Now()); s != 0; s = l.next(time.Now()) {
		l.signal(s)
	}
}

// serve is the loop.
func (l *loop) serve() {
	for !l.done {
		at, due := l.machine.Deadline() // none: idle costs nothing
		if due && l.wasFrozen(at) {
			at = l.thawed.Add(thawWait)
		} else if due && !time.Now().Before(at) {
			l.tell(stop.Event{Kind: stop.Tick})
			at = time.Now() // signals get their turn, however much is due
		}
		if s := l.next(at); s != 0 {
			l.signal(s)
		}
		select {
		case s := <-l.looks:
			l.see(s)
		default:
		}
	}
}

// A loop that is later than freeze for a deadline was stopped, by the freezer of its
// control group, say. It waits up to thawWait for a sample of the traffic.
const (
	freeze   = time.Second
	thawWait = time.Second
)

// wasFrozen reports whether the end of the hold, at, passed in a freeze and the traffic
// has not been sampled since. What the last sample before the freeze says is over: the
// report would give wrong counts for the moment of the signal.
func (l *loop) wasFrozen(at time.Time) bool {
	now := time.Now()
	if l.machine.State() != stop.Holding || now.Sub(at) < freeze || l.seen.Began.After(at) {
		return false
	}
	if l.thawed.IsZero() {
		l.thawed = now
	}
	return now.Sub(l.thawed) < thawWait
}

// stale is how old a look may be, beside the time that it takes: we may have been
// stopped, or starved, since.
const stale = 100 * time.Millisecond

// see tells the machine what was seen of the traffic.
func (l *loop) see(s observe.Snapshot) {
	if l.machine.State() != stop.Holding {
		l.late = &s
		return
	}
	l.warn(&s)
	if s.State == stop.ConditionMet && time.Since(s.Began) > 2*s.PreviousTook+stale {
		return
	}
	l.seen = s
	l.tell(stop.Event{Kind: stop.Sampled, Traffic: s.State, Waiting: len(s.PathsPresent) > 0})
}

// warn says, once, what cannot be seen. To a delay that is all there is it makes
// no difference.
func (l *loop) warn(s *observe.Snapshot) {
	adaptive, level := l.plan.stop.Gate.Until != Elapsed, Debug
	if adaptive {
		level = Warn
	}
	switch {
	case s.Warning == "":
	case s.Observer == observe.None && adaptive:
		l.log(level, "cannot look at the traffic, so the hold lasts to its ceiling: %s", s.Warning)
	case s.Observer == observe.None:
		l.log(level, "cannot look at the traffic: %s", s.Warning)
	default:
		l.log(level, "looking at the traffic through %s: %s", s.Observer, s.Warning)
	}
	if s.State == stop.UDPOnly && l.seen.State != s.State && adaptive {
		l.log(level, "it listens for UDP alone (%s), whose traffic cannot be seen: the hold lasts its floor, or --max-delay where that is given", numbers(s.Listeners.UDP))
	}
}

// signal tells the machine of a signal, unless it is ours.
func (l *loop) signal(s sig.Signal) {
	switch {
	case s == sig.CHLD:
		l.sweep()
	case !l.own(s):
		if l.plan.auto && presetSignals().Has(s) {
			l.identify()
		}
		l.tell(stop.Event{Kind: stop.SignalArrived, Signal: s})
	}
}

// identify finds out what the command is, where a preset is to go by that.
// Entrypoint scripts execute it in their own time.
func (l *loop) identify() {
	if !l.plan.auto || l.command == 0 {
		return
	}
	exe, argv := l.program(l.command)
	if found := recognise(exe, argv); found != nil {
		l.machine.UsePreset(l.plan.adopt(found))
		l.log(Info, "the command is known as %s", found.Name)
	}
}

// sweep takes all the news there is of children, the command's and others'.
func (l *loop) sweep() {
	orphans := 0
	pid, status := l.reap()
	for ; pid > 0; pid, status = l.reap() {
		switch {
		case pid == l.command:
			l.tell(l.news(status))
		case pid == l.hook:
			l.hookNews(status)
		case status.Stopped == 0 && !status.Continued:
			orphans++
			l.reaped(pid)
		}
	}
	if orphans > 0 {
		l.tell(stop.Event{Kind: stop.OrphanReaped})
	}
	if pid == proc.None && l.machine.State() == stop.Lingering {
		l.tell(stop.Event{Kind: stop.NoChildren})
	}
}

// news is what became of the command.
func (l *loop) news(status proc.Status) stop.Event {
	switch {
	case status.Stopped != 0:
		return stop.Event{Kind: stop.CommandStopped, Signal: status.Stopped}
	case status.Continued:
		return stop.Event{Kind: stop.CommandContinued}
	}
	l.command = 0 // the number may be used again
	return stop.Event{Kind: stop.CommandExited, Signal: status.Signal, Code: status.Code}
}

// hookNews is what became of what ran when the stop began.
func (l *loop) hookNews(status proc.Status) {
	switch {
	case status.Stopped != 0 || status.Continued:
		return
	case status.Signal != 0:
		l.log(Warn, "--on-stop was killed by %v", status.Signal)
	case status.Code != 0:
		l.log(Warn, "--on-stop exited %d", status.Code)
	}
	l.hook = 0
	l.tell(stop.Event{Kind: stop.OnStopEnded})
}

func (l *loop) reaped(pid int) {
	level := Debug
	if l.cfg.WarnReaped {
		level = Warn
	}
	l.log(level, "reaped orphan %d", pid)
}

// tell hands an event to the machine and does what it answers.
func (l *loop) tell(e stop.Event) {
	l.log(Debug, "%v: %v", l.machine.State(), e)
	before := l.machine.State()
	if before == stop.Holding {
		l.identify() // a script may execute it even now
	}
	for _, a := range l.machine.Handle(time.Now(), e) {
		l.act(a)
	}
	if l.unhooked {
		l.unhooked = false
		l.tell(stop.Event{Kind: stop.OnStopEnded})
	}
	if now := l.machine.State(); before == stop.Holding && now != stop.Holding {
		l.ease()
		if now == stop.Stopping {
			d := l.account()
			l.write(d, d.progress())
		}
	}
}
