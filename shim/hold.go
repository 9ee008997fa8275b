package shim

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// ErrHookFailed is the error of a hook with a fault, which has been logged. Unless the fault
// made the hold impossible, the hold took place.
var ErrHookFailed = errors.New("the hook failed")

// Hold holds as a preStop hook, beside a command that others stop, and returns when the
// command may be stopped. TERM ends the hold. A fault of the hook's command line, which
// cfg is free of, is logged.
func Hold(cfg Config, fault error) error {
	proc.HideGoEnv()
	p, err := newPlan(&cfg, false, false)
	p.hook = true
	p.setWorkDir(&cfg)
	l := newLoop(&cfg, p, hookHost(&cfg))
	defer l.host.flush()
	if err == nil {
		err = l.host.processes.Reserve()
	}
	if err != nil { // no hold takes place
		return l.failHook(fault, err)
	}
	if err = l.openTermlog(); err != nil {
		err = fmt.Errorf("%w; holding without a termination log", err)
		l.termlogWarned = true
	}
	failed := l.failHook(fault, err)
	l.logWarnings()
	l.warnWaitGone()
	l.dispatch(stop.Event{Kind: stop.PreStop})
	l.serve()
	ended := l.machine.Record().Ended
	if ended == stop.Ceiling || ended == stop.Unobserved {
		l.log(Warn, "traffic may not have stopped: the hold reached its ceiling")
	}
	return failed
}

// Decline logs, where Hold would log, a fault of the hook's command line, and why no hold
// takes place.
func Decline(cfg Config, fault error, why string) error {
	l := newLoop(&cfg, plan{}, hookHost(&cfg))
	defer l.host.flush()
	failed := l.failHook(fault)
	l.report([]string{"hold: " + why}, nil)
	return failed
}

// failHook logs the faults of a hook that are not nil, and returns ErrHookFailed if there are
// any.
func (l *loop) failHook(faults ...error) (failed error) {
	for _, fault := range faults {
		if fault != nil {
			l.log(Error, "hold: %v", fault)
			failed = ErrHookFailed
		}
	}
	return failed
}

// SayAsHook is Say for a preStop hook, whose lines also go to PID 1's standard error.
func SayAsHook(text string, inJSON bool) {
	Say(text, inJSON)
	if out := pid1Stderr(inJSON); out != nil {
		say(out, text, inJSON)
	}
}

// hookHost returns the host of a preStop hook. Kubernetes discards a hook's output, so
// lines also go to PID 1's standard error.
func hookHost(cfg *Config) host {
	h := newHost(cfg)
	out := pid1Stderr(cfg.JSON)
	if out == nil {
		return h
	}
	writeLine, flush := h.writeLine, h.flush
	h.writeLine = func(lines ...string) {
		writeLine(lines...)
		out.Line(lines...)
	}
	h.flush = func() {
		flush()
		out.Flush()
	}
	return h
}

// pid1Stderr returns a writer to PID 1's standard error, nil if PID 1's standard error
// cannot be opened or is the same file as that of this process.
func pid1Stderr(inJSON bool) *stderr.Writer {
	if os.Getpid() == 1 {
		return nil
	}
	fd, err := unix.Open("/proc/1/fd/2", unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var own, pid1 unix.Stat_t
	if unix.Fstat(2, &own) == nil && unix.Fstat(fd, &pid1) == nil && own.Dev == pid1.Dev && own.Ino == pid1.Ino {
		unix.Close(fd)
		return nil
	}
	return newStderr(fd, inJSON)
}
