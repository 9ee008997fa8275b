package termlog

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// maxSize is the part of the file that Kubernetes shows, in bytes.
const maxSize = 4096

// file is a termination log with lameduck's text in it.
type file struct {
	path     string // "": none
	given    bool   // by the user: the file is created, and errors are returned
	ownText  string // what lameduck has written
	ownStart int    // the offset of ownText
}

func newFile(path string) *file {
	switch path {
	case "":
		return &file{path: "/dev/termination-log"}
	case "none":
		return &file{}
	}
	return &file{path: path, given: true}
}

// write replaces lameduck's text in the file, after the text of others, if the new text
// fits. An empty text removes lameduck's text.
func (f *file) write(text string) error {
	if f.path == "" || !f.given && text == "" && f.ownText == "" {
		return nil
	}
	if err := f.rewrite(text); f.given {
		return err
	}
	return nil
}

func (f *file) rewrite(text string) error {
	flags := unix.O_RDWR | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if f.given {
		flags |= unix.O_CREAT
	}
	fd, err := openTrusted(f.path, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, maxSize+1)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil || n > maxSize { // no room is left
		return err
	}
	before := string(buf[:n])
	start := min(f.ownStart, n)
	rest, _ := strings.CutPrefix(before[start:], f.ownText) // what is left of it if others cut it or wrote over it is theirs
	others := before[:start] + rest
	own := fit(others, text)
	if content := others + own; content != before {
		written, err := unix.Pwrite(fd, []byte(content), 0)
		switch {
		case err != nil:
			return err
		case written < len(content):
			return unix.ENOSPC
		}
		unix.Ftruncate(fd, int64(written)) // cannot fail where a write succeeds
	}
	f.ownText, f.ownStart = own, len(others)
	return nil
}

// fit returns text as a line of its own after the text of others, or "" if the line does
// not fit.
func fit(others, text string) string {
	line := text + "\n"
	switch {
	case others == "":
		line = quote.Cut(text, maxSize-1) + "\n"
	case !strings.HasSuffix(others, "\n"):
		line = "\n" + line
	}
	if text == "" || len(others)+len(line) > maxSize {
		return ""
	}
	return line
}
