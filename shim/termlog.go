package shim

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the report goes beside standard error.
const (
	DefaultTerminationLog = "/dev/termination-log" // where that is a file that may be written
	NoTerminationLog      = "none"
)

// termlog is a container's termination message: a file of which Kubernetes shows
// the last 4096 bytes when the container has ended. It may be the command's too.
type termlog struct {
	path  string
	given bool   // by the user: it is made, and faults are told
	ours  string // what we have written,
	at    int    // and where
}

// most is how much of the file is shown.
const most = 4096

func newTermlog(path string) *termlog {
	switch path {
	case "":
		return &termlog{path: DefaultTerminationLog}
	case NoTerminationLog:
		return &termlog{}
	}
	return &termlog{path: path, given: true}
}

// write puts text in the place of what was written before, after what others have
// written, where it fits; an empty one takes back what was written.
func (t *termlog) write(text string) error {
	if t.path == "" || !t.given && text == "" && t.ours == "" {
		return nil
	}
	err := t.rewrite(text)
	if !t.given {
		return nil
	}
	return err
}

func (t *termlog) rewrite(text string) error {
	flags := unix.O_RDWR | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if t.given {
		flags |= unix.O_CREAT
	}
	fd, size, err := openOwn(t.path, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if size > most {
		return nil // there is no room
	}
	buf := make([]byte, most)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil {
		return err
	}
	others := t.without(string(buf[:n]))
	ours := fit(others, text)
	if ours == "" && len(others) == n {
		t.ours = ""
		return nil
	}
	whole := others + ours
	switch wrote, err := unix.Pwrite(fd, []byte(whole), 0); {
	case err != nil:
		return err
	case wrote < len(whole):
		return unix.ENOSPC
	}
	t.ours, t.at = ours, len(others)
	return unix.Ftruncate(fd, int64(len(whole)))
}

// openOwn opens a regular file and is its size. Where others may write to the file's
// directory, they could have planted a symbolic or a hard link to a file that they
// may not write to: there neither is followed. Elsewhere links are as good as the
// directory: /dev/stderr is one. The directories above are taken as they are.
func openOwn(name string, flags int) (fd int, size int64, err error) {
	dir, err := unix.Open(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, 0, err
	}
	defer unix.Close(dir)
	shared := othersMayWrite(dir)
	if shared {
		flags |= unix.O_NOFOLLOW
	}
	fd, err = unix.Openat(dir, path.Base(name), flags, 0o644)
	switch {
	case err == unix.ELOOP && shared:
		return -1, 0, errors.New("it is a symbolic link, and others may write to its directory")
	case err != nil:
		return -1, 0, err
	}
	var at unix.Stat_t
	switch err = unix.Fstat(fd, &at); {
	case err != nil:
	case at.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("it is no regular file")
	case at.Nlink > 1 && shared:
		err = errors.New("it is a file with another name (a hard link), and others may write to its directory")
	default:
		return fd, at.Size, nil
	}
	unix.Close(fd)
	return -1, 0, err
}

// othersMayWrite reports whether users other than root and the user that lameduck
// runs as may write to a directory, which a file descriptor is open on.
func othersMayWrite(dir int) bool {
	var at unix.Stat_t
	if unix.Fstat(dir, &at) != nil {
		return true
	}
	trusted := at.Uid == 0 || int(at.Uid) == unix.Geteuid()
	return !trusted || at.Mode&0o022 != 0
}

// without is what is there but for what is ours. Who writes at a place of his own
// in the file may have written over the first part of it.
func (t *termlog) without(whole string) string {
	if t.ours == "" {
		return whole
	}
	if before, after, found := strings.Cut(whole, t.ours); found {
		return before + after
	}
	if len(whole) == t.at+len(t.ours) {
		for i := 1; i < len(t.ours)-1; i++ { // more than its newline
			if before, found := strings.CutSuffix(whole, t.ours[i:]); found {
				return before
			}
		}
	}
	return whole
}

// fit is what is to follow what others have written: text on a line of its own,
// or nothing where there is no room for it.
func fit(others, text string) string {
	if text == "" {
		return ""
	}
	if others == "" && len(text) >= most {
		return strings.ToValidUTF8(text[:most-1], "") + "\n"
	}
	ours := text + "\n"
	if others != "" && !strings.HasSuffix(others, "\n") {
		ours = "\n" + ours
	}
	if len(others)+len(ours) > most {
		return ""
	}
	return ours
}
