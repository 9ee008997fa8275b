package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Status is a change of a child's state.
type Status struct {
	Change Change
	Signal sig.Signal // that ended or stopped the child; 0: none has
	Code   int        // of a child that has ended without a Signal
}

// Change is the kind of a Status.
type Change int

// The kinds.
const (
	Ended Change = iota
	Stopped
	Continued
)

// The results of Reap that are not a pid.
const (
	NoneYet = 0  // no child has changed its state
	None    = -1 // we have no children
)

// everyChild is wait4(2)'s -1.
const everyChild = ^uintptr(0)

// Reap returns one change of a child's state, without waiting. One CHLD may stand for many
// changes: call Reap until it returns NoneYet or None.
func (*Processes) Reap() (pid int, status Status) {
	var ws unix.WaitStatus
	// Raw: with WNOHANG the call never waits, so the scheduler need not know.
	child, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, everyChild, uintptr(unsafe.Pointer(&ws)),
		unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, 0, 0, 0)
	pid = int(child)
	switch {
	case errno != 0:
		return None, status
	case pid == 0:
		return NoneYet, status
	case ws.Stopped():
		status = Status{Change: Stopped, Signal: sig.Signal(ws.StopSignal())}
	case ws.Continued():
		status.Change = Continued
	case ws.Signaled():
		status.Signal = sig.Signal(ws.Signal())
	default:
		status.Code = ws.ExitStatus()
	}
	return pid, status
}

// Kill sends s to the process pid, or to the process group -pid.
func (*Processes) Kill(pid int, s sig.Signal) error { return unix.Kill(pid, unix.Signal(s)) }

// BecomeSubreaper makes the kernel give orphaned descendants to us.
func BecomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// SetParentDeathSignal makes the kernel send s to us when our parent ends. The setting
// belongs to the calling thread, and lasts because Go ends no threads.
// See PR_SET_PDEATHSIG in prctl(2).
func SetParentDeathSignal(s sig.Signal) error {
	parent := unix.Getppid()
	err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(s), 0, 0, 0)
	if err == nil && unix.Getppid() != parent {
		err = unix.Kill(unix.Getpid(), unix.Signal(s))
	}
	return err
}
