package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is where proc(5) is mounted; "" is /proc.
type Root string

// Self stands for our own process, in place of a process id, and system for no process: a file of the
// system or of the network namespace.
const (
	Self   = 0
	system = -1
)

// String returns the path of the mount point.
func (r Root) String() string {
	if r == "" {
		return "/proc"
	}
	return string(r)
}

// path returns the path of a file of a process, or of the system.
func (r Root) path(pid int, name string) string {
	switch pid {
	case system:
	case Self:
		name = "self/" + name
	default:
		name = strconv.Itoa(pid) + "/" + name
	}
	return r.String() + "/" + name
}

// Gone reports whether a process has ended and been reaped, by the error of a method.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// CheckNamespace returns an error unless /proc shows our own PID namespace: the process
// ids of another namespace would be other processes.
func (r Root) CheckNamespace() error {
	self, err := os.Readlink(r.String() + "/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return fmt.Errorf("%q does not show our PID namespace", r.String())
	}
	return nil
}

// list returns the strings of a file, up to a number of bytes, in which a zero byte ends each
// string.
func (r Root) list(pid int, name string, limit int64) ([]string, error) {
	file, err := os.Open(r.path(pid, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit))
	if err != nil || len(text) == 0 {
		return []string{}, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// text returns what one read(2) of a file shows, up to 16 KiB: all of a file that is not a list. That takes
// fewer system calls than os.ReadFile, and a look reads some files of every process.
func (r Root) text(pid int, name string) (string, error) {
	path := r.path(pid, name)
	var text [16 << 10]byte
	n := 0
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(fd)
		n, err = unix.Read(fd, text[:])
	}
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return string(text[:n]), nil
}

// field returns the rest of the line that begins with a name; the first line does not count.
func field(text, name string) string {
	_, rest, _ := strings.Cut(text, "\n"+name)
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// numbers calls visit with the numeric names in a directory, in the kernel's order. An
// error of visit ends the visits.
func numbers(path string, visit func(dir, number int) error) error {
	dir, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(dir)
	var buf [2048]byte
	var names []string
	for {
		n, err := unix.Getdents(dir, buf[:])
		if err != nil {
			return &fs.PathError{Op: "getdents64", Path: path, Err: err}
		}
		if n == 0 {
			return nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			number, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if err := visit(dir, number); err != nil {
				return err
			}
		}
	}
}
