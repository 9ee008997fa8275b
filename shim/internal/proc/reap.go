package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Status is what became of a child: it was stopped or continued, else it ended,
// by Signal or else with Code.
type Status struct {
	Signal    sig.Signal
	Code      int
	Stopped   sig.Signal // what stopped it; 0: it was not stopped
	Continued bool
}

// What Reap returns in place of a pid.
const (
	NoneYet = 0  // no child has news
	None    = -1 // there is no child at all
)

// everyChild is wait4(2)'s -1.
const everyChild = ^uintptr(0)

// Reap takes the news of one child. One CHLD may stand for many deaths, so call
// it until there is none.
func Reap() (pid int, status Status) {
	for {
		var ws unix.WaitStatus
		// Raw, since it never waits: it need not let go of the processor.
		pid, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, everyChild, uintptr(unsafe.Pointer(&ws)), unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, 0, 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return None, Status{}
		case pid == 0:
			return NoneYet, Status{}
		}
		return int(pid), decode(ws)
	}
}

func decode(ws unix.WaitStatus) Status {
	switch {
	case ws.Stopped():
		return Status{Stopped: sig.Signal(ws.StopSignal())}
	case ws.Continued():
		return Status{Continued: true}
	case ws.Signaled():
		return Status{Signal: sig.Signal(ws.Signal())}
	}
	return Status{Code: ws.ExitStatus()}
}

// Kill sends s to the process pid, or to the process group -pid.
func Kill(pid int, s sig.Signal) error { return unix.Kill(pid, unix.Signal(s)) }

// KillDescendant sends s to p, one of Descendants, and never to another process that has
// been given its number since: the pidfd is opened first, and the process of that number
// must then have been started when p was. Kernels before 5.3 have no pidfds, and
// sandboxes deny them; kill(2) is used there. See pidfd_send_signal(2).
func KillDescendant(p Process, s sig.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ESRCH:
		return err
	default:
		return Kill(p.PID, s)
	}
	if processOf(p.PID).Start != p.Start {
		return unix.ESRCH
	}
	err = unix.PidfdSendSignal(fd, unix.Signal(s), nil, 0)
	if err == unix.EPERM || err == unix.ENOSYS {
		return Kill(p.PID, s)
	}
	return err
}

// Adopt makes us the reaper of our descendants' orphans where we are not PID 1
// and so would not be given them.
func Adopt() error {
	if unix.Getpid() == 1 {
		return nil
	}
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// FollowParent has s sent to us when our parent ends, parent being who it was
// when we started. The setting is the calling thread's; Go keeps its threads,
// and so it lasts. See PR_SET_PDEATHSIG in prctl(2).
func FollowParent(s sig.Signal, parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(s), 0, 0, 0); err != nil {
		return err
	}
	if unix.Getppid() != parent {
		return Kill(unix.Getpid(), s)
	}
	return nil
}
