package alive

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// content is the whole content of an alive file.
const content = "lameduck alive 1\n"

// lockTimeout is how long Create waits for the lock: a process in Present holds the
// lock for a moment.
const lockTimeout = time.Second

// File is an alive file that this process has locked.
type File struct {
	path string
	fd   int
}

// Create creates the file with mode 0644, or takes over a file whose owner has ended.
// Other users may often write to the volume, and could plant a symbolic or a hard link
// to a file of lameduck's user: neither is followed. Errors do not name the path.
func Create(path string) (*File, error) {
	for began := time.Now(); time.Since(began) <= lockTimeout; time.Sleep(10 * time.Millisecond) {
		f, err := create(path)
		if err != unix.EWOULDBLOCK {
			return f, err
		}
	}
	return nil, errors.New("cannot lock the file: another running lameduck holds the lock; give each a path of its own")
}

// create returns EWOULDBLOCK if another process has the file locked, or has just
// removed it.
func create(path string) (*File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|
		unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o644)
	switch {
	case err == unix.ELOOP: // by O_NOFOLLOW
		return nil, errors.New("cannot use a symbolic link: give the path of a file")
	case err != nil:
		return nil, fmt.Errorf("cannot create the file: %w", err)
	}
	f := &File{path, fd}
	if err := f.acquire(); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return f, nil
}

// acquire checks, locks and writes the file. A path that is not a regular file is
// refused, since Remove would remove the path.
func (f *File) acquire() error {
	var stat unix.Stat_t
	if err := unix.Fstat(f.fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("cannot use a path other than a regular file: give another path")
	}
	if stat.Nlink > 1 {
		return errors.New("cannot use a file with a second name (a hard link): give another path")
	}
	if err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if !f.isCurrent() {
		return unix.EWOULDBLOCK
	}
	text := readStart(f.fd)
	if text != "" && text != content {
		return errors.New("cannot overwrite a file of another program: give another path")
	}
	unix.Fchmod(f.fd, 0o644) // the umask applied at creation
	if _, err := unix.Pwrite(f.fd, []byte(content), 0); err != nil {
		return fmt.Errorf("cannot write the file: %w", err)
	}
	return nil
}

// Remove removes and unlocks the file. A newer file at the same path stays.
func (f *File) Remove() {
	if f.isCurrent() {
		unix.Unlink(f.path)
	}
	unix.Close(f.fd)
}

// isCurrent reports whether the path still leads to the open file.
func (f *File) isCurrent() bool {
	var opened, found unix.Stat_t
	return unix.Fstat(f.fd, &opened) == nil && unix.Lstat(f.path, &found) == nil &&
		opened.Dev == found.Dev && opened.Ino == found.Ino
}

// Present reports whether path exists and, for an alive file, whether its owner runs.
// A path that cannot be checked counts as present.
func Present(path string) bool {
	var stat unix.Stat_t
	err := unix.Stat(path, &stat)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		return false
	case err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return true
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err != unix.ENOENT
	}
	defer unix.Close(fd)
	return readStart(fd) != content || unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil
}

// readStart returns the first bytes of a file, one more than content has.
func readStart(fd int) string {
	buf := make([]byte, len(content)+1)
	n, _ := unix.Pread(fd, buf, 0)
	return string(buf[:max(n, 0)])
}
