//go:build linux

package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/lastresort"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// StartError is the error for a command that could not be started.
type StartError = proc.StartError

// Stage has to be the first call of main: signals are caught from then on, if not since the
// init of package sigcatch. If args belong to the second stage of a start, Stage becomes
// the command and does not return. Else Stage returns the environment exactly as execve(2)
// passed it, duplicates included.
func Stage(args []string) (env []string) {
	sigcatch.Start()
	proc.SecondStage(args)
	return proc.Environ()
}

// Run runs the command until the command exits, and returns the exit code to leave with:
// the command's own, or 128+n if signal n killed the command, mapped by ExitCodes. After
// an error nothing was started. A *StartError means that the command cannot be started.
func Run(cfg Config) (code int, err error) {
	proc.HideGoEnv()
	p, err := plan.New(&cfg, plan.Place{
		Terminal: proc.IsTerminal(0), PID1: os.Getpid() == 1, Uncatchable: sigcatch.Uncatchable,
	})
	if err != nil {
		return 0, err
	}
	if cfg.Holds() {
		wearMark()
	}
	if err := setUpReaping(p); err != nil {
		return 0, err
	}
	h, err := newHost(p, 0)
	if err != nil {
		return 0, err
	}
	return run(p, h)
}

// setUpReaping makes lameduck the subreaper if lameduck is not PID 1, and sets the
// parent-death signal.
func setUpReaping(p *plan.Plan) error {
	if s := p.ParentDeathSignal; s != 0 {
		if err := proc.SetParentDeathSignal(s); err != nil {
			return fmt.Errorf("--parent-death-signal=%v (LAMEDUCK_PARENT_DEATH_SIGNAL): %w", s, err)
		}
	}
	if p.Subreaper == No || p.PID1 { // which gets all orphans without asking
		return nil
	}
	switch err := proc.BecomeSubreaper(); {
	case err == nil:
	case p.Subreaper == Yes:
		return fmt.Errorf("--subreaper (LAMEDUCK_SUBREAPER): %w", err)
	default:
		p.Warnings = append(p.Warnings, fmt.Sprintf(
			"orphans will not be reaped: lameduck is not PID 1, and cannot become the subreaper: %v", err))
	}
	return nil
}

// run does everything else that may fail, and starts the command last. A stop signal that has arrived by then
// keeps the command from being started.
func run(p *plan.Plan, h host) (code int, err error) {
	l := newLoop(p, h)
	defer h.flush()
	l.logWarnings()
	if err := termlogError(p, h.writeTermlog()); err != nil {
		return 0, err
	}
	var early []sig.Signal
	for s := h.next(time.Now(), [2]int{}); s != 0; s = h.next(time.Now(), [2]int{}) {
		if to, _ := p.Stop.Rewrites.Of(s); to != 0 && p.Stop.StopSignals.Has(s) {
			l.log(Info, "%v arrived before the start; the command is not started", s)
			return p.ExitCode(128+int(s), false), nil
		}
		early = append(early, s)
	}
	if path := p.AliveFile; path != "" {
		file, err := alive.Create(path)
		if err != nil {
			return 0, fmt.Errorf("--alive-file=%s (LAMEDUCK_ALIVE_FILE): %w", Quote(path), err)
		}
		defer file.Remove()
	}
	l.command, err = h.Start(proc.Command{Argv: p.Command, Env: p.Env, Session: p.Session, SameGroup: p.SameGroup})
	if err != nil {
		return 0, err
	}
	l.group = l.command
	code = l.serveToEnd(early)
	if p.Stop.JobControl {
		h.RetakeTerminal(l.group)
	}
	return code, nil
}

// serveToEnd serves until the command has ended, and neither an error nor a fault of lameduck's own
// ends it sooner. It returns the exit code. early are the signals that arrived before the start.
func (l *loop) serveToEnd(early []sig.Signal) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = lastresort.Serve(l.rest(fault))
		}
	}()
	for _, s := range early {
		l.onSignal(s)
	}
	l.host.ReleaseInherited()
	l.serve()
	record := l.machine.Record()
	if record.TriggeredAt.IsZero() {
		l.sayOnce(l.stopReport().Unreported(), true) // who needed more time
	}
	return l.plan.ExitCode(record.ExitStatus(), !record.SignaledAt().IsZero())
}

// rest says, after a fault, what the last resort has to know, and logs the fault.
func (l *loop) rest(fault any) (c lastresort.Command) {
	c = lastresort.Command{
		PID: l.command, Target: l.target(), Status: l.ended,
		Stop: l.plan.Stop.ScheduleFor(sig.TERM).FirstSignal(sig.TERM), Arrived: l.arrived, Rewrites: l.plan.Stop.Rewrites,
	}
	if record := l.machine.Record(); !record.SignaledAt().IsZero() {
		if l.plan.Stop.StopSignals.Has(l.arrived) { // the stop knows of it
			c.Arrived = 0
		}
		if !l.stopSent {
			c.StopAt = cmp.Or(l.machine.HoldEnd(), time.Now())
		}
	}
	l.logFault("%v: the command goes on, and lameduck only reaps, passes signals on and "+
		"sends %v for TERM; please report it", fault, c.Stop)
	return c
}

// logFault logs a fault of lameduck's own, which may be that of logging.
func (l *loop) logFault(format string, args ...any) {
	defer func() { recover() }()
	fault("log")
	l.log(Error, "a fault of lameduck's own, "+format, args...)
}

// logWarnings logs the warnings of the plan, and what about the machine would spoil a stop now.
// That is no error: the program of --on-stop may come later, on a volume for example, and no
// stop depends on it. A hook is told at once, by its start.
func (l *loop) logWarnings() {
	l.warnOfPlan()
	if len(l.plan.OnStop.Command) > 0 && !l.plan.Hook {
		if err := l.host.Find(l.plan.OnStop.Command, l.plan.Env); err != nil {
			l.log(Warn, "--on-stop (LAMEDUCK_ON_STOP): %v: correct the command, or a stop goes on without it", err)
		}
	}
	for _, file := range l.plan.WaitGone {
		dir := path.Dir(file)
		_, err := os.Stat(dir + "/.")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			l.log(Warn, "--wait-gone=%s (LAMEDUCK_WAIT_GONE): there is no directory %s, "+
				"so no hold waits for the path: mount the neighbor's volume, or correct the path",
				Quote(file), Quote(dir))
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			l.log(Warn, "--wait-gone=%s (LAMEDUCK_WAIT_GONE) is a directory: "+
				"give the neighbor's file in it, or every hold lasts to its ceiling", Quote(file))
		}
	}
}

// warnOfPlan logs the warnings of the plan that were not logged so far.
func (l *loop) warnOfPlan() {
	for _, warning := range l.plan.Warnings {
		l.sayOnce(warning, true)
	}
}

// termlogError returns the error of a termination log that was given and cannot be written.
func termlogError(p *plan.Plan, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--termination-log=%s (LAMEDUCK_TERMINATION_LOG): %w: give a file, or none",
		Quote(p.TerminationLog), err)
}
