package proc

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/procfs"
)

// spareDescriptors is how many descriptors are needed later: for epoll, its eventfd, and
// the two ends of the pipe through which a fork reports its error.
const spareDescriptors = 4

// checkDescriptors returns an error unless spareDescriptors can be opened. Go's runtime,
// which has raised the soft limit to the hard limit, would not survive without them.
func checkDescriptors() error {
	var got [spareDescriptors]int
	n := 0
	defer func() {
		for _, fd := range got[:n] {
			unix.Close(fd)
		}
	}()
	for ; n < spareDescriptors; n++ {
		fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fmt.Errorf("%d free file descriptors are needed, but only %d are available: raise the limit of open "+
				"files (RLIMIT_NOFILE)", spareDescriptors, n)
		}
		got[n] = fd
	}
	return nil
}

// leaveDirectory makes / our working directory, so that we keep no file system busy,
// and returns the previous directory for Command.Dir. If the path no longer leads to that
// directory (deleted, mounted over, or not to be searched) we stay, the result is empty, and
// ReleaseInherited leaves the directory.
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

// ReleaseInherited closes the descriptors from 3 up that we inherited, and leaves the
// working directory: the command has them, and we keep nothing busy. Descriptors that Go
// opened have CLOEXEC, and stay. Call ReleaseInherited after Start.
func (*Processes) ReleaseInherited() {
	unix.Chdir("/")
	for _, fd := range openDescriptors() {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// openDescriptors lists the open descriptors from 3 up; without /proc, the numbers that
// programs commonly use.
func openDescriptors() (fds []int) {
	open, err := proc.Descriptors(procfs.Self)
	if err != nil {
		for fd := 3; fd < 1024; fd++ {
			fds = append(fds, fd)
		}
		return fds
	}
	for _, fd := range open {
		if fd >= 3 {
			fds = append(fds, fd)
		}
	}
	return fds
}
