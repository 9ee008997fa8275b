package proc

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// IsTerminal reports whether fd is a terminal.
func IsTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// foreground reports whether standard input is our controlling terminal, and our process
// group its foreground group.
func foreground() bool { return inForeground(unix.Getpgrp()) }

func inForeground(pgrp int) bool {
	now, err := foregroundGroup(0)
	return err == nil && now == pgrp
}

// foregroundGroup is tcgetpgrp(3). A pid_t has four bytes, which unix.IoctlGetInt would
// read as the upper half of an int on a 64-bit big-endian processor.
func foregroundGroup(fd int) (int, error) {
	pgrp, err := unix.IoctlGetUint32(fd, unix.TIOCGPGRP)
	return int(pgrp), err
}

// GiveTerminal makes the command's group the foreground group of the terminal if our group is
// that, and reports whether our group was.
func (*Processes) GiveTerminal(pgrp int) bool {
	ours := foreground()
	if ours {
		setForeground(pgrp)
	}
	return ours
}

// RetakeTerminal makes our group the foreground group of the terminal again if the command's
// still is: the command is gone, but a script may go on after us.
func (*Processes) RetakeTerminal(pgrp int) {
	if inForeground(pgrp) {
		setForeground(unix.Getpgrp())
	}
}

// setForeground is tcsetpgrp(3). TTOU stops a caller in the background unless the caller
// blocks TTOU.
func setForeground(pgrp int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	blocked(sig.TTOU, func() { unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pgrp) })
}

// blocked calls f while this thread blocks s.
func blocked(s sig.Signal, f func()) {
	var set unix.Sigset_t
	set.Val[0] = 1 << (s - 1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	f()
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

// isTerminalError lists the errors of tcsetpgrp(3) and TIOCSCTTY for a terminal that is
// not, or no longer, ours.
func isTerminalError(err error) bool {
	switch err {
	case syscall.ENOTTY, syscall.ENXIO, syscall.EIO, syscall.EBADF, syscall.EPERM, syscall.EINVAL:
		return true
	}
	return false
}

// releaseTerminal gives up our controlling terminal, if standard input is that. If we lead
// the session, no process of the session has the terminal any more, and another session can
// take it; the kernel then sends us HUP and CONT, not meant for the command.
func (c *Command) releaseTerminal() {
	if !IsTerminal(0) || unix.IoctlSetInt(0, unix.TIOCNOTTY, 0) != nil {
		return
	}
	if leadsSession() {
		c.released = sig.SetOf(sig.HUP, sig.CONT)
	}
}

// takeTerminal makes standard input the controlling terminal of our session if we lead the
// session and no other session has the terminal: the argument is 0.
func takeTerminal() {
	if leadsSession() {
		unix.IoctlSetInt(0, unix.TIOCSCTTY, 0)
	}
}

func leadsSession() bool {
	leader, err := unix.Getsid(0)
	return err == nil && leader == unix.Getpid()
}

// takeReleased reports, once for each signal, whether s was sent because we gave up the
// terminal.
func (c *Command) takeReleased(s sig.Signal) bool {
	was := c.released.Has(s)
	c.released = c.released.Without(sig.SetOf(s))
	return was
}

// StopSelf stops us as the default action of s does: STOP always, TSTP unless our process
// group is orphaned and no process could continue us. StopSelf returns when we have been
// continued. The signal goes to this very thread: another thread might take it after the
// handler is restored. Other pending signals of the kind are merged with it.
func (*Processes) StopSelf(s sig.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before sigaction
	blocked(s, func() {
		action(s, &sigaction{}, &before)
		unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.Signal(s))
	})
	action(s, &before, nil)
}
