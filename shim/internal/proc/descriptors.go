package proc

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// spareDescriptors is how many descriptors are needed later: for epoll, its eventfd, and
// the two ends of the pipe through which a fork reports its error.
const spareDescriptors = 4

// checkDescriptors returns an error unless spareDescriptors can be opened, and epoll(7) used.
// Go's runtime, which has raised the soft limit to the hard limit, would not survive without
// them.
func checkDescriptors() error {
	var fds [spareDescriptors]int
	for n := range fds { // an instance of epoll, and eventfds
		create := func() (int, error) { return unix.Eventfd(0, unix.EFD_CLOEXEC) }
		if n == 0 {
			create = func() (int, error) { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) }
		}
		fd, err := create()
		if err == unix.EMFILE || err == unix.ENFILE {
			return fmt.Errorf("%d free file descriptors are needed, but only %d are available: raise the limit of "+
				"open files (RLIMIT_NOFILE)", spareDescriptors, n)
		}
		if err != nil {
			return epollError(err)
		}
		defer unix.Close(fd) // when all are open
		fds[n] = fd
	}
	var event unix.EpollEvent
	if err := unix.EpollCtl(fds[0], unix.EPOLL_CTL_ADD, fds[1], &event); err != nil {
		return epollError(err)
	}
	// Go's runtime calls epoll_pwait(2) on every machine, unix.EpollWait does not.
	_, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fds[0]), uintptr(unsafe.Pointer(&event)), 1, 0, 0, 0)
	if errno != 0 {
		return epollError(errno)
	}
	return nil
}

func epollError(err error) error {
	return fmt.Errorf("cannot use epoll: %w: allow epoll_create1, epoll_ctl, epoll_pwait and eventfd2 in the seccomp "+
		"profile, if there is one", err)
}

// leaveDirectory makes / our working directory, so that we keep no file system busy,
// and returns the previous directory for the command. If the path no longer leads to that
// directory (deleted, mounted over, or not to be searched) we stay until the command has
// been started, and the result is empty.
func leaveDirectory() (dir string) {
	var here, there unix.Stat_t
	dir, err := unix.Getwd()
	if err != nil || unix.Stat(".", &here) != nil || unix.Stat(dir, &there) != nil ||
		here.Dev != there.Dev || here.Ino != there.Ino || unix.Chdir(dir) != nil {
		return ""
	}
	unix.Chdir("/")
	return dir
}

// ReleaseInherited closes the descriptors from 3 up that we inherited: the command has them,
// and we keep nothing busy. Descriptors that Go opened have CLOEXEC, and stay. Call
// ReleaseInherited after Start.
func (p *Processes) ReleaseInherited() {
	if p.noneInherited {
		return
	}
	release := func(fd int, _ []byte) {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if fd >= 3 && err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	if _, err := proc.EachTarget(procfs.Self, release); err != nil {
		for fd := range 1024 { // the numbers that programs commonly use
			release(fd, nil)
		}
	}
}
