//go:build linux

// Package lastresort keeps a command running when lameduck itself has failed after the start: a
// panic must not end the server. Serve reaps, passes signals on, sends the stop signal where
// TERM arrives, and ends with the command; it knows no hold, no schedule and no report. Hold is the
// rest of a preStop hook.
//
// The package imports nothing but what it needs to wait, to signal and to reap, and shares no state
// with the loop.
package lastresort

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/sigcatch"
)

// Command is the command, as far as it was known before the failure.
type Command struct {
	PID    int // 0: it has ended
	Target int // of signals: PID, or the process group -PID
	Status proc.Status

	Stop     sig.Signal   // sent where TERM arrives
	StopAt   time.Time    // when Stop is sent for a TERM that has arrived; zero: none has, or Stop was sent
	Arrived  sig.Signal   // a signal to pass on that has arrived; 0: none
	Rewrites sig.Rewrites // of the other signals
}

// Serve returns the exit code when the command has ended.
func Serve(c Command) (code int) {
	var processes proc.Processes
	for s := c.Arrived; ; s = sigcatch.Next(c.StopAt, [2]int{}) {
		for pid, status := processes.Reap(); pid > 0; pid, status = processes.Reap() {
			if pid == c.PID && status.Change == proc.Ended {
				c.PID, c.Status = 0, status
			}
		}
		switch {
		case c.PID == 0 && c.Status.Signal != 0:
			return 128 + int(c.Status.Signal)
		case c.PID == 0:
			return c.Status.Code
		}
		due := !c.StopAt.IsZero() && !time.Now().Before(c.StopAt)
		if s == sig.TERM || due {
			c.StopAt = time.Time{}
			processes.Kill(c.Target, c.Stop)
		}
		if to, _ := c.Rewrites.Of(s); to != 0 && s != sig.CHLD && s != sig.TERM {
			processes.Kill(c.Target, to)
		}
	}
}

// Hold returns at the end of the hold, or at TERM or INT.
func Hold(end time.Time) {
	for time.Now().Before(end) {
		if s := sigcatch.Next(end, [2]int{}); s == sig.TERM || s == sig.INT {
			return
		}
	}
}
