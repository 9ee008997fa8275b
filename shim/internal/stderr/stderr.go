package stderr

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
)

// maxQueued is how many lines may wait for a reader.
const maxQueued = 64

// MaxLine is the length of the longest line in bytes, newline included: up to this
// length (PIPE_BUF) a pipe takes a line whole or not at all. Longer lines are cut.
const MaxLine = 4096

// flushTimeout is how long Flush waits for a reader, and lateTimeout how long for the goroutine
// afterwards, where the kernel would take a line: a busy machine may run the goroutine late.
const (
	flushTimeout = 100 * time.Millisecond
	lateTimeout  = time.Second
)

// Writer writes lines to one descriptor. All its methods belong to one goroutine, the
// loop's.
type Writer struct {
	fd            int
	format        func(text string) (line string)
	queue         chan []byte  // nil until the first line for the goroutine
	waiting       atomic.Int32 // lines given to the goroutine and not yet written
	dropped       int
	readerGone    atomic.Bool // a write failed with EPIPE
	causedSIGPIPE bool        // and the kernel has sent this process SIGPIPE
}

// New returns a Writer for a descriptor. A warning that lines were dropped has the caller's format.
func New(fd int, format func(text string) (line string)) *Writer {
	return &Writer{fd: fd, format: format}
}

// Line writes one line or several together, now or later, or drops them. Unprintable
// characters are escaped here, so that no text from outside can forge a line or send
// escape sequences to a terminal.
func (w *Writer) Line(lines ...string) {
	loss := fmt.Sprintf("%d lines dropped: standard error was not read in time", w.dropped)
	if w.dropped > 0 && w.write(w.format(loss)) {
		w.dropped = 0
	}
	if w.dropped > 0 || !w.write(lines...) {
		w.dropped++
	}
}

// write returns false if the lines must be dropped. After EPIPE nothing is written:
// another write would raise another SIGPIPE.
func (w *Writer) write(lines ...string) bool {
	if w.readerGone.Load() {
		return true
	}
	var text []byte
	for _, line := range lines {
		text = append(append(text, quote.Cut(quote.Line(line), MaxLine-1)...), '\n')
	}
	if w.waiting.Load() == 0 { // else behind the lines that wait
		text = w.writeNow(text)
	}
	return len(text) == 0 || w.enqueue(text)
}

// writeNow writes as many bytes as possible without waiting, and returns the rest, if that can be written.
// Where pwritev2 fails, the descriptor may be a socket: send(2) raises no SIGPIPE.
func (w *Writer) writeNow(text []byte) (rest []byte) {
	n, err := unix.Pwritev2(w.fd, [][]byte{text}, -1, unix.RWF_NOWAIT)
	switch err {
	case nil, unix.EAGAIN:
	case unix.EPIPE:
		w.readerGone.Store(true)
		w.causedSIGPIPE = true
	default:
		n, err = unix.SendmsgN(w.fd, text, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	}
	if err == unix.EPIPE || err == unix.EBADF {
		return nil
	}
	return text[max(n, 0):]
}

// enqueue gives the text to the goroutine, and returns false if the queue is full.
// The goroutine starts with the first text; the thread that the goroutine may block
// was parked before the command started.
func (w *Writer) enqueue(text []byte) bool {
	if w.queue == nil {
		w.queue = make(chan []byte, maxQueued)
		go w.run()
	}
	select {
	case w.queue <- text:
		w.waiting.Add(1)
		runtime.Gosched() // most lines can be written at once
		return true
	default:
		return false
	}
}

// run writes the queue. A terminal with TOSTOP sends SIGTTOU to writers in the
// background, again and again unless blocked; a pipe without readers sends SIGPIPE, to
// the writing thread. Both are blocked for this thread alone: elsewhere in the process
// the two signals may come from other processes, and are passed on.
func (w *Writer) run() {
	runtime.LockOSThread()
	var blocked unix.Sigset_t
	blocked.Val[0] = 1<<(unix.SIGTTOU-1) | 1<<(unix.SIGPIPE-1)
	unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, nil)
	for line := range w.queue {
		w.writeBlocking(line)
		w.waiting.Add(-1)
	}
}

// writeBlocking writes a line. On error the rest of the line is lost.
func (w *Writer) writeBlocking(line []byte) {
	defer func() { recover() }() // a fault of lameduck's own costs a line
	for len(line) > 0 && !w.readerGone.Load() {
		n, err := unix.Write(w.fd, line)
		switch err {
		case nil:
			line = line[n:]
		case unix.EINTR:
		case unix.EPIPE:
			w.readerGone.Store(true)
		default:
			return
		}
	}
}

// CausedSIGPIPE reports, once, whether a write by Line met a pipe without readers.
// The kernel has then sent SIGPIPE to this process, which must not be passed on.
func (w *Writer) CausedSIGPIPE() bool {
	caused := w.causedSIGPIPE
	w.causedSIGPIPE = false
	return caused
}

// Flush waits for queued lines to be written: up to 100 ms, and up to a second as long as the
// descriptor is ready for writing, as files always are, and as far as a signal lets poll(2) tell.
func (w *Writer) Flush() {
	for began := time.Now(); w.waiting.Load() > 0; time.Sleep(time.Millisecond) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLOUT}}, 0)
		isStuck := n < 1 && err != unix.EINTR
		if waited := time.Since(began); waited > lateTimeout || isStuck && waited > flushTimeout {
			return
		}
	}
}
