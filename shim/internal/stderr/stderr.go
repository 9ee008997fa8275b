// Package stderr writes lines to standard error and never makes the writer wait.
//
// The descriptor is shared with the command, so O_NONBLOCK is not ours to set;
// a line is offered with pwritev2(RWF_NOWAIT), or to a socket with
// MSG_DONTWAIT. What cannot be taken at once, or not that way (terminals, some
// file systems), goes to one goroutine that may block for as long as it
// likes. Its queue is bounded, and what finds it full is dropped and counted.
//
// See pwritev2(2), send(2), pipe(7).
package stderr

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// queued is how many lines may wait for a reader.
const queued = 64

// Longest is the largest line in bytes, its newline included: up to here a pipe
// takes a line whole or not at all (PIPE_BUF). What is longer is cut.
const Longest = 4096

// patience is how long Flush waits for a reader.
const patience = 100 * time.Millisecond

// Writer writes lines to one descriptor. All its methods belong to one
// goroutine, the loop's.
type Writer struct {
	// Gap is what to say where n lines are missing.
	Gap func(n int) string

	fd      int
	queue   chan []byte
	done    chan struct{} // closed when the goroutine has written the queue
	waiting atomic.Int32  // lines given to the goroutine and not yet written
	dropped int
	broken  atomic.Bool // the reader is gone for good
	piped   bool        // and the kernel has sent us a PIPE to say so
}

// New is a writer for descriptor fd.
func New(fd int) *Writer {
	return &Writer{fd: fd, Gap: func(n int) string {
		return fmt.Sprintf("lameduck: %d lines dropped: standard error was not read in time", n)
	}}
}

// Line writes text and a newline, sooner or later or, at worst, never. What is not
// printable is escaped here, so that no text from outside can forge a line or send a
// terminal its escapes.
func (w *Writer) Line(text string) {
	if w.dropped > 0 {
		if !w.put(w.Gap(w.dropped)) {
			w.dropped++
			return
		}
		w.dropped = 0
	}
	if !w.put(text) {
		w.dropped++
	}
}

// put reports false where the line had to be dropped.
func (w *Writer) put(text string) bool {
	if w.broken.Load() {
		return true // another write would mean another PIPE
	}
	line := append(cut(quote.Line(text)), '\n')
	if w.waiting.Load() == 0 { // else it would overtake what waits
		rest, err := w.now(line)
		if len(rest) == 0 || err == unix.EPIPE || err == unix.EBADF {
			return true // written, or never to be
		}
		line = rest
	}
	return w.later(line)
}

// cut is text as far as it fits into a line with its newline; no character is cut.
func cut(text string) []byte {
	if len(text) < Longest {
		return []byte(text)
	}
	return []byte(strings.ToValidUTF8(text[:Longest-1], ""))
}

// now writes as much as goes without waiting, and returns the rest.
func (w *Writer) now(line []byte) (rest []byte, err error) {
	n, err := unix.Pwritev2(w.fd, [][]byte{line}, -1, unix.RWF_NOWAIT)
	if err != nil && err != unix.EAGAIN && err != unix.EPIPE {
		err = unix.Sendto(w.fd, line, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		n = len(line)
	} else if err == unix.EPIPE {
		w.broken.Store(true)
		w.piped = true
	}
	if err != nil {
		return line, err
	}
	return line[n:], nil
}

// later hands the line to the goroutine, which is started when first needed;
// the thread it may block was parked before the command started.
func (w *Writer) later(line []byte) bool {
	if w.queue == nil {
		w.queue, w.done = make(chan []byte, queued), make(chan struct{})
		go w.run()
	}
	select {
	case w.queue <- line:
		w.waiting.Add(1)
		runtime.Gosched() // most often it can be written at once
		return true
	default:
		return false
	}
}

func (w *Writer) run() {
	defer close(w.done)
	// A terminal with TOSTOP sends TTOU to writers in the background, over and
	// over unless it is blocked; a pipe without readers sends PIPE, to this very
	// thread. We cannot ignore them, since those that others send are passed on.
	runtime.LockOSThread()
	var own unix.Sigset_t
	own.Val[0] = 1<<(unix.SIGTTOU-1) | 1<<(unix.SIGPIPE-1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &own, nil)
	for line := range w.queue {
		for len(line) > 0 && !w.broken.Load() {
			n, err := unix.Write(w.fd, line)
			if err == unix.EINTR {
				continue
			}
			if err == unix.EPIPE {
				w.broken.Store(true)
			}
			if err != nil {
				break
			}
			line = line[n:]
		}
		w.waiting.Add(-1)
	}
}

// Broke reports, once, whether a write of ours met a pipe without readers: the
// PIPE that the kernel sends us then is nobody's message.
func (w *Writer) Broke() bool {
	was := w.piped
	w.piped = false
	return was
}

// Flush waits a moment for what is queued. It is the last call.
func (w *Writer) Flush() {
	if w.queue == nil {
		return
	}
	close(w.queue)
	select {
	case <-w.done:
	case <-time.After(patience):
	}
}
