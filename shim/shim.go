package shim

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// StartError is a command that could not be started.
type StartError = proc.StartError

// Run runs the command until it ends, and returns the exit code to leave with:
// the command's own, 128+n where signal n killed it, mapped by ExitCodes. An
// error means that nothing was started; it is a *StartError where that is the
// command's fault.
func Run(cfg Config) (code int, err error) {
	proc.SetAside()
	p, err := cfg.plan(proc.IsTerminal(0))
	if err != nil {
		return 0, err
	}
	return run(cfg, p, system(p.stop.Stops|p.stop.Rewrites.Given()))
}

// loop is the one goroutine that selects, decides, acts, kills and reaps.
type loop struct {
	kernel
	plan    plan
	level   Level
	machine *stop.Machine
	pid     int
	done    bool
	code    int
}

func run(cfg Config, p plan, k kernel) (int, error) {
	l := &loop{kernel: k, plan: p, level: cfg.Level, machine: stop.New(p.stop)}
	defer l.flush()
	for _, w := range p.warnings {
		l.log(Warn, w)
	}
	if err := l.prepare(); err != nil {
		return 0, err
	}
	if err := l.adopt(); err != nil {
		l.log(Warn, fmt.Sprintf("cannot adopt orphans, and will not reap them: not PID 1, and %v", err))
	}
	if l.drain(); l.done {
		return l.code, nil
	}
	pid, err := l.start(cfg.Command, cfg.Env)
	if err != nil {
		return 0, err
	}
	// From here on nothing is fatal any more: warn and go on.
	l.pid = pid
	l.tell(stop.Event{Kind: stop.Started})
	l.started()
	l.serve()
	return l.code, nil
}

// drain takes the signals that came while we were starting. Go hands them over
// in batches; of two CHLD of our own the second is in a later batch than what
// came before the first, so when it is through, all of that is.
func (l *loop) drain() {
	for range 2 {
		if l.nudge() != nil {
			return
		}
		for s := range l.signals {
			if s == syscall.SIGCHLD {
				break
			}
			l.signal(s)
		}
	}
}

// serve is the loop.
func (l *loop) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for l.sweep(); !l.done; l.sweep() {
		if at, ok := l.machine.Deadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Stop() // idle costs nothing
		}
		select {
		case s := <-l.signals:
			l.signal(s)
		case <-timer.C:
			l.tell(stop.Event{Kind: stop.Tick})
		}
	}
}

// signal tells the machine of a signal, unless it is ours.
func (l *loop) signal(arrived os.Signal) {
	s := sig.Signal(arrived.(syscall.Signal))
	if s == sig.CHLD || s == sig.PIPE && l.broken() {
		return
	}
	l.tell(stop.Event{Kind: stop.Arrived, Signal: s})
}

// sweep reaps all that has ended, the command and whatever else, to the last.
func (l *loop) sweep() {
	for {
		pid, status, ok := l.reap()
		switch {
		case !ok:
			return
		case pid == l.pid:
			l.pid = 0
			l.tell(stop.Event{Kind: stop.Exited, Signal: status.Signal, Code: status.Code})
		default:
			l.log(Debug, fmt.Sprintf("reaped orphan %d", pid))
		}
	}
}

// tell hands an event to the machine and does what it answers.
func (l *loop) tell(e stop.Event) {
	if l.level >= Debug {
		l.log(Debug, fmt.Sprintf("%v: %v", l.machine.State(), e))
	}
	for _, a := range l.machine.Handle(time.Now(), e) {
		l.act(a)
	}
}
