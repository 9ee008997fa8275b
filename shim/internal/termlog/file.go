package termlog

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// The values of --termination-log that are not plain paths.
const (
	DefaultPath = "/dev/termination-log" // used if the file exists and may be written
	None        = "none"
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
		return &file{path: DefaultPath}
	case None:
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
	err := f.rewrite(text)
	if !f.given {
		return nil
	}
	return err
}

func (f *file) rewrite(text string) error {
	flags := unix.O_RDWR | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	if f.given {
		flags |= unix.O_CREAT
	}
	fd, size, err := openTrusted(f.path, flags)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if size > maxSize {
		return nil // no room is left
	}
	buf := make([]byte, maxSize)
	n, err := unix.Pread(fd, buf, 0)
	if err != nil {
		return err
	}
	others := f.withoutOwn(string(buf[:n]))
	own := fit(others, text)
	if own == "" && len(others) == n {
		f.ownText = ""
		return nil
	}
	content := others + own
	written, err := unix.Pwrite(fd, []byte(content), 0)
	switch {
	case err != nil:
		return err
	case written < len(content):
		return unix.ENOSPC
	}
	f.ownText = own
	f.ownStart = len(others)
	return unix.Ftruncate(fd, int64(len(content)))
}

// withoutOwn returns the content of the file without lameduck's text. A program with a
// file offset of its own may have overwritten the beginning of lameduck's text.
func (f *file) withoutOwn(content string) string {
	if f.ownText == "" {
		return content
	}
	if before, after, found := strings.Cut(content, f.ownText); found {
		return before + after
	}
	if len(content) == f.ownStart+len(f.ownText) {
		for i := 1; i < len(f.ownText)-1; i++ { // at least one byte besides the newline
			if before, found := strings.CutSuffix(content, f.ownText[i:]); found {
				return before
			}
		}
	}
	return content
}

// fit returns text as a line of its own after the text of others, or "" if the line does
// not fit.
func fit(others, text string) string {
	if text == "" {
		return ""
	}
	if others == "" {
		return quote.Cut(text, maxSize-1) + "\n"
	}
	line := text + "\n"
	if !strings.HasSuffix(others, "\n") {
		line = "\n" + line
	}
	if len(others)+len(line) > maxSize {
		return ""
	}
	return line
}
