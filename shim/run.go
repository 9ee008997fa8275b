package shim

import (
	"fmt"
	"os"
	"path"

	"github.com/lameduck-init/lameduck/shim/internal/alive"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// StartError is the error for a command that could not be started.
type StartError = proc.StartError

// Stage has to be the first call of main: signals are caught from then on, if not since the
// init of package sigcatch. If args belong to the second stage of a start, Stage becomes
// the command and does not return.
func Stage(args []string) {
	sigcatch.Start()
	proc.SecondStage(args)
}

// PlainBuild reports whether the program was built without the linker flags of the Makefile;
// see docs/limits.md.
func PlainBuild() bool { return sigcatch.Plain() }

// Environ returns the environment of this process exactly as execve(2) passed the
// environment, duplicates included.
func Environ() []string { return proc.Environ() }

// IsTerminal reports whether the file descriptor fd is a terminal.
func IsTerminal(fd int) bool { return proc.IsTerminal(fd) }

// Run runs the command until the command exits, and returns the exit code to leave with:
// the command's own, or 128+n if signal n killed the command, mapped by ExitCodes. After
// an error nothing was started. A *StartError means that the command cannot be started.
func Run(cfg Config) (code int, err error) {
	proc.HideGoEnv()
	p, err := newPlan(&cfg, proc.IsTerminal(0), os.Getpid() == 1)
	if err != nil {
		return 0, err
	}
	p.setWorkDir(&cfg)
	return run(&cfg, p, newHost(&cfg))
}

// setWorkDir notes where --on-stop runs, before lameduck moves to the root directory.
func (p *plan) setWorkDir(cfg *Config) {
	if len(cfg.OnStop) > 0 {
		p.workDir, _ = os.Getwd()
	}
}

func run(cfg *Config, p plan, h host) (int, error) {
	l := newLoop(cfg, p, h)
	defer h.flush()
	err := l.begin()
	if l.aliveFile != nil {
		defer l.aliveFile.Remove()
	}
	if err != nil || l.done {
		return l.code, err
	}
	// From here on no error is fatal: warn and go on.
	l.dispatch(stop.Event{Kind: stop.CommandStarted})
	h.processes.ReleaseInherited()
	l.serve()
	if p.stop.JobControl {
		h.processes.RetakeTerminal(l.children.group)
	}
	return l.code, nil
}

// begin does everything that may fail, and starts the command last. A stop signal that
// has arrived by then keeps the command from being started.
func (l *loop) begin() error {
	if err := l.prepare(); err != nil {
		return err
	}
	if err := l.setUpReaping(); err != nil {
		return err
	}
	l.takePending()
	if l.done {
		return nil
	}
	if l.cfg.Health != nil {
		listener, err := l.host.serveHealth(*l.cfg.Health)
		if err != nil {
			return fmt.Errorf("--health=%v: %w", l.cfg.Health, err)
		}
		l.health = listener
	}
	if l.cfg.AliveFile != "" {
		file, err := alive.Create(l.cfg.AliveFile)
		if err != nil {
			return fmt.Errorf("--alive-file=%s: %w", Quote(l.cfg.AliveFile), err)
		}
		l.aliveFile = file
	}
	command := proc.Command{Argv: l.cfg.Command, Env: l.cfg.Env, Session: l.cfg.Session, SameGroup: l.cfg.SameGroup}
	pid, err := l.host.processes.Start(command)
	l.children.command = pid
	l.children.group = pid
	return err
}

// prepare logs the warnings of the plan, and takes the resources that may be unavailable
// later.
func (l *loop) prepare() error {
	l.logWarnings()
	l.warnOnStop()
	l.warnWaitGone()
	if err := l.host.processes.Reserve(); err != nil {
		return err
	}
	return l.openTermlog()
}

func (l *loop) logWarnings() {
	for _, warning := range l.plan.warnings {
		l.log(Warn, "%s", warning)
	}
}

// warnOnStop warns if --on-stop would fail now. The program may come later, on a volume for
// example, and no stop depends on --on-stop: the fault is not an error.
func (l *loop) warnOnStop() {
	if len(l.cfg.OnStop) == 0 {
		return
	}
	if err := l.host.processes.Find(l.plan.workDir, l.cfg.OnStop, l.cfg.Env); err != nil {
		l.log(Warn, "--on-stop: %v: correct the command, or a stop goes on without --on-stop", err)
	}
}

// warnWaitGone warns of the paths of --wait-gone whose directories do not exist. A path that
// does not exist is normal: the neighbor is gone, or has not started.
func (l *loop) warnWaitGone() {
	for _, file := range l.plan.paths {
		if dir := path.Dir(file); !l.host.hasDirectory(dir) {
			l.log(Warn, "--wait-gone=%s: there is no directory %s, so no hold waits for the path: mount the neighbor's "+
				"volume, or correct the path", Quote(file), Quote(dir))
		}
	}
}

// openTermlog checks that the termination log can be written.
func (l *loop) openTermlog() error {
	if err := l.host.writeTermlog(); err != nil {
		return fmt.Errorf("--termination-log=%s: %w: give a file, or none", Quote(l.cfg.TerminationLog), err)
	}
	return nil
}

// setUpReaping makes lameduck the subreaper if lameduck is not PID 1, and sets the
// parent-death signal.
func (l *loop) setUpReaping() error {
	if s := l.cfg.ParentDeathSignal; s != 0 {
		if err := l.host.processes.SetParentDeathSignal(s); err != nil {
			return fmt.Errorf("--parent-death-signal=%v: %w", s, err)
		}
	}
	if l.cfg.Subreaper == No {
		return nil
	}
	err := l.host.processes.BecomeSubreaper()
	if err != nil && l.cfg.Subreaper == Yes {
		return fmt.Errorf("--subreaper: %w", err)
	}
	if err != nil {
		l.log(Warn, "orphans will not be reaped: lameduck is not PID 1, and cannot become the subreaper: %v", err)
	}
	return nil
}
