//go:build linux

package shim

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/lastresort"
	"github.com/lameduck-init/lameduck/shim/internal/plan"
	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/procfs"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

// Hold holds as a preStop hook, beside a command that others stop, and returns when the
// command may be stopped. TERM ends the hold. faults are those of the flags that were left out of
// cfg; Hold logs them, and then why a hold is useless, if it is. Hold reports whether there was no
// fault.
func Hold(cfg Config, faults []*FlagError, useless string) (ok bool) {
	proc.HideGoEnv()
	p, err := plan.New(&cfg, plan.Place{Hook: true, Uncatchable: sigcatch.Uncatchable})
	if err != nil { // a review has found none
		Say(err.Error(), cfg.JSON)
		return false
	}
	first := procfs.Root("").First()
	h, failed := newHost(p, first)
	l := newLoop(p, h)
	l.command = first
	defer l.host.flush()
	ok = len(faults) == 0
	for _, fault := range faults {
		l.log(Error, "hold: %v; left out", fault)
	}
	if useless != "" {
		l.host.writeLine(logLine(Info, "hold: "+useless, p.JSON)) // whatever the level
		return ok
	}
	if failed != nil {
		l.log(Error, "hold: %v", failed)
		return false
	}
	if err := termlogError(p, l.host.writeTermlog()); err != nil {
		l.log(Error, "hold: %v; holding without a termination log", err)
		l.host.writeTermlog, ok = func(...string) error { return nil }, false
	}
	l.logWarnings()
	return l.holdToEnd() && ok
}

// holdToEnd holds as a hook. After a fault of lameduck's own it holds blindly, as long as the hold may
// last, and reports false.
func (l *loop) holdToEnd() (ok bool) {
	end := time.Now().Add(l.plan.Stop.Gate.MaxHold())
	defer func() {
		fault := recover()
		if fault == nil {
			return
		}
		l.logFault("%v: the hold goes on blindly for %s; please report it", fault, max(time.Until(end), 0))
		lastresort.Hold(end)
	}()
	l.dispatch(stop.Event{Kind: stop.PreStop, Signal: sig.TERM})
	l.serve()
	return true
}

// pid1Stderr returns a descriptor of PID 1's standard error, and none if that cannot be opened
// or is the standard error of this process.
func pid1Stderr() []int {
	const path = "/proc/1/fd/2"
	own, _ := os.Stat("/proc/self/fd/2")
	theirs, err := os.Stat(path)
	if err != nil || os.SameFile(own, theirs) {
		return nil
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	return []int{fd}
}
