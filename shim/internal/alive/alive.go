package alive

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// mark is all that the file has in it.
const mark = "lameduck alive 1\n"

// patience is for those who look at the file, and have it locked for a moment.
const patience = time.Second

// File is our own file, locked.
type File struct {
	path string
	fd   int
}

// Create makes the file, mode 0644, or takes over one that nobody holds any more. The
// volume is often writable to others, who could plant a symbolic or a hard link to a
// file of lameduck's user: neither is followed.
func Create(path string) (*File, error) {
	for until := time.Now().Add(patience); ; {
		f, err := create(path)
		if err != unix.EWOULDBLOCK {
			return f, err
		}
		if time.Now().After(until) {
			return nil, errors.New("another lameduck that runs has it: give each a path of its own")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func create(path string) (f *File, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o644)
	switch {
	case err == unix.ELOOP && isLink(path):
		return nil, errors.New("it is a symbolic link: give the path of a file")
	case err != nil:
		return nil, fmt.Errorf("cannot make it: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	var at unix.Stat_t
	if err := unix.Fstat(fd, &at); err != nil || at.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.New("it is no regular file: give another path") // and we would remove it
	}
	if at.Nlink > 1 {
		return nil, errors.New("it is a file with another name (a hard link): give another path")
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, err
	}
	f = &File{path, fd}
	if !f.there() {
		return nil, unix.EWOULDBLOCK // its owner has just removed it
	}
	if text := read(fd); text != "" && text != mark {
		return nil, errors.New("it is somebody else's file: give another path")
	}
	unix.Fchmod(fd, 0o644) // whatever the umask is
	if _, err := unix.Pwrite(fd, []byte(mark), 0); err != nil {
		return nil, fmt.Errorf("cannot write it: %w", err)
	}
	return f, nil
}

// Remove takes the file away, unless it is another by now.
func (f *File) Remove() {
	if f.there() {
		unix.Unlink(f.path)
	}
	unix.Close(f.fd)
}

// there reports whether the path still leads to the file that we hold.
func (f *File) there() bool {
	var ours, found unix.Stat_t
	return unix.Fstat(f.fd, &ours) == nil && unix.Lstat(f.path, &found) == nil && ours.Dev == found.Dev && ours.Ino == found.Ino
}

// isLink reports whether path is a symbolic link.
func isLink(path string) bool {
	var at unix.Stat_t
	return unix.Lstat(path, &at) == nil && at.Mode&unix.S_IFMT == unix.S_IFLNK
}

// Present reports whether there is something at path; of a file of ours, whether
// its owner runs. What cannot be looked at is there.
func Present(path string) bool {
	var at unix.Stat_t
	switch err := unix.Stat(path, &at); {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return false
	case err != nil || at.Mode&unix.S_IFMT != unix.S_IFREG:
		return true
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT
	}
	defer unix.Close(fd)
	return read(fd) != mark || unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil
}

// read is the beginning of a file.
func read(fd int) string {
	buf := make([]byte, len(mark)+1)
	n, _ := unix.Pread(fd, buf, 0)
	return string(buf[:max(n, 0)])
}
