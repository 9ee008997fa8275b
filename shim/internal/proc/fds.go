package proc

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// spare is how many descriptors are needed once we run: epoll, its eventfd,
// and the two ends of the pipe through which a fork tells of its failure.
const spare = 4

// CheckDescriptors is an error where fewer than spare descriptors can be had.
// Go's runtime, which has raised the soft limit to the hard one, would not
// survive that.
func CheckDescriptors() error {
	var got []int
	defer func() {
		for _, fd := range got {
			unix.Close(fd)
		}
	}()
	for range spare {
		fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return fmt.Errorf("%d free file descriptors are needed and %d are to be had: raise the limit of open files (RLIMIT_NOFILE)", spare, len(got))
		}
		got = append(got, fd)
	}
	return nil
}

// LeaveDirectory makes / our working directory, so that we keep no file system busy,
// and returns the previous one for Command.Dir. Where its path does not lead back to it
// (the directory was deleted, is mounted over, or may not be searched) we stay in it,
// the result is empty, and LetGo leaves it.
func LeaveDirectory() (dir string) {
	var here, there unix.Stat_t
	dir, err := unix.Getwd()
	if err != nil || unix.Stat(".", &here) != nil || unix.Stat(dir, &there) != nil ||
		here.Dev != there.Dev || here.Ino != there.Ino || unix.Chdir(dir) != nil {
		return ""
	}
	unix.Chdir("/")
	return dir
}

// LetGo stops us from holding on to what the command inherited with us: the
// working directory, and descriptors from 3 up. Go's own all have CLOEXEC, and
// stay. Call it after Start.
func LetGo() {
	unix.Chdir("/")
	for _, fd := range openDescriptors() {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
}

// openDescriptors lists what may be open from 3 up: what /proc shows, else the
// numbers that programs use.
func openDescriptors() (fds []int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		for fd := 3; fd < 1024; fd++ {
			fds = append(fds, fd)
		}
		return fds
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= 3 {
			fds = append(fds, fd)
		}
	}
	return fds
}
