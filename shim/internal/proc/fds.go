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
