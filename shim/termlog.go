package shim

import (
	"errors"
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
	fd, err := unix.Open(t.path, flags, 0o644)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var at unix.Stat_t
	if err := unix.Fstat(fd, &at); err != nil {
		return err
	}
	if at.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is no regular file")
	}
	if at.Size > most {
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
