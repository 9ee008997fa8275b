package proc

import (
	"runtime"

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
func foreground() bool { return foregroundGroup() == unix.Getpgrp() }

// foregroundGroup is tcgetpgrp(3) of standard input: -1 without a terminal, 0 for a group outside of our PID
// namespace, where ours is 0 too if we were started from outside. A pid_t has four bytes, which
// unix.IoctlGetInt would read as the upper half of an int on a 64-bit big-endian processor.
func foregroundGroup() int {
	pgrp, err := unix.IoctlGetUint32(0, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return int(pgrp)
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
	if foregroundGroup() == pgrp {
		setForeground(unix.Getpgrp())
	}
}

// setForeground is tcsetpgrp(3). TTOU stops a caller in the background unless the caller
// blocks TTOU.
func setForeground(pgrp int) {
	blocked(sig.TTOU, func() { unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, pgrp) })
}

// blocked calls f on a thread that blocks s meanwhile.
func blocked(s sig.Signal, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (s - 1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	f()
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
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

func leadsSession() bool {
	leader, err := unix.Getsid(0)
	return err == nil && leader == unix.Getpid()
}

// StopSelf stops us as the default action of s does: STOP always, TSTP unless our process
// group is orphaned and no process could continue us. StopSelf returns when we have been
// continued. The signal goes to this very thread: another thread might take it after the
// handler is restored. Other pending signals of the kind are merged with it.
func (*Processes) StopSelf(s sig.Signal) {
	var before sigaction
	blocked(s, func() {
		action(s, &sigaction{}, &before)
		unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.Signal(s))
	})
	action(s, &before, nil)
}
