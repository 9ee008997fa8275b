package termlog

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// flushTimeout bounds how long Flush waits for a file that hangs.
const flushTimeout = 200 * time.Millisecond

// Writer writes the termination log on a goroutine of its own. The methods are for a
// single goroutine.
type Writer struct {
	file    *file
	texts   chan string           // the newest text only; nil until the first text
	written chan struct{}         // closed when texts is closed and written
	lastErr atomic.Pointer[error] // of the goroutine
}

// New returns a writer to a file, as --termination-log names it: "" is /dev/termination-log if that
// exists and may be written, "none" is no file.
func New(path string) *Writer { return &Writer{file: newFile(path)} }

// Write replaces the lines that were written last, and returns the last error of an earlier
// write. Until the first line there is no goroutine: without lines, Write checks at once
// that a file given by the user can be written, creates the file, and returns the error.
func (w *Writer) Write(lines ...string) error {
	var printable []string
	for _, line := range lines {
		printable = append(printable, quote.Line(line))
	}
	if w.texts == nil {
		if len(lines) == 0 {
			return w.file.write("")
		}
		w.texts = make(chan string, 1)
		w.written = make(chan struct{})
		go w.run()
	}
	select {
	case <-w.texts: // which the new text replaces
	default:
	}
	w.texts <- strings.Join(printable, "\n")
	if err := w.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

func (w *Writer) run() {
	defer close(w.written)
	for text := range w.texts {
		w.write(text)
	}
}

func (w *Writer) write(text string) {
	defer func() { recover() }() // a fault of lameduck's own costs a text
	if err := w.file.write(text); err != nil {
		w.lastErr.Store(&err)
	}
}

// Flush waits up to 200 ms until all text is written. Flush is the last call.
func (w *Writer) Flush() {
	if w.texts == nil {
		return
	}
	close(w.texts)
	select {
	case <-w.written:
	case <-time.After(flushTimeout):
	}
}
