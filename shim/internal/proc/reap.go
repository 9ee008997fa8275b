package proc

import (
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Status is how a process ended: by Signal, or else with Code.
type Status struct {
	Signal sig.Signal
	Code   int
}

// Reap takes one child that has ended, and ok is false when there is none
// (left). One CHLD may stand for many deaths, so call it until then.
func Reap() (pid int, status Status, ok bool) {
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || pid <= 0:
			return 0, Status{}, false
		case ws.Signaled():
			return pid, Status{Signal: sig.Signal(ws.Signal())}, true
		}
		return pid, Status{Code: ws.ExitStatus()}, true
	}
}

// Kill sends s to the process pid.
func Kill(pid int, s sig.Signal) error { return unix.Kill(pid, unix.Signal(s)) }

// Adopt makes us the reaper of our descendants' orphans where we are not PID 1
// and so would not be given them.
func Adopt() error {
	if unix.Getpid() == 1 {
		return nil
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}
