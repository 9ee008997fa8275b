package shim

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Hold holds as a preStop hook, beside a command that others stop, and returns when the
// command may be stopped. TERM ends the hold. After an error no hold took place.
func Hold(cfg Config) error {
	proc.HideGoEnv()
	p, err := newPlan(&cfg, false, false)
	if err != nil || !cfg.Holds() {
		return err
	}
	p.hook = true
	return hold(&cfg, p, hookHost(&cfg))
}

func hold(cfg *Config, p plan, h host) error {
	l := newLoop(cfg, p, h)
	defer h.output.flush()
	if err := l.prepare(); err != nil {
		return err
	}
	l.dispatch(stop.Event{Kind: stop.PreStop})
	l.serve()
	ended := l.machine.Record().Ended
	if ended == stop.Ceiling || ended == stop.Unobserved {
		l.log(Warn, "traffic may not have stopped: the hold reached its ceiling")
	}
	return nil
}

// Decline logs, where Hold would log, why no hold takes place.
func Decline(cfg Config, why string) {
	l := newLoop(&cfg, plan{}, hookHost(&cfg))
	l.report("hold: "+why, nil)
	l.host.output.flush()
}

// hookHost returns the host of a preStop hook. Kubernetes discards a hook's output, so
// lines also go to PID 1's standard error.
func hookHost(cfg *Config) host {
	h := newHost(cfg)
	if out := pid1Stderr(cfg.JSON); out != nil {
		h.output = &teeOutput{h.output, out}
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

// teeOutput writes lines to a second place too.
type teeOutput struct {
	outputHost
	second *stderr.Writer
}

func (t *teeOutput) writeLine(text string) {
	t.outputHost.writeLine(text)
	t.second.Line(text)
}

func (t *teeOutput) flush() {
	t.outputHost.flush()
	t.second.Flush()
}
