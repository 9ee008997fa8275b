package box

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Lines collects the lines of a pipe or terminal, with the time of each.
type Lines struct {
	EOF chan struct{} // closed at the end

	t         *testing.T
	from      io.ReadCloser
	mu        sync.Mutex // guards the fields below, which the reader and the test share
	more      *sync.Cond
	collected []Line
	over      bool
	seen      int // by Next
}

// Line is a line, and the time of its arrival.
type Line struct {
	At   time.Time
	Text string
}

// String returns the text without the time.
func (l Line) String() string { return l.Text }

func newLines(t *testing.T, from io.ReadCloser) *Lines {
	l := &Lines{EOF: make(chan struct{}), t: t, from: from}
	l.more = sync.NewCond(&l.mu)
	go l.read()
	return l
}

func (l *Lines) read() {
	for in := bufio.NewScanner(l.from); in.Scan(); {
		l.change(func() { l.collected = append(l.collected, Line{time.Now(), in.Text()}) })
	}
	l.change(func() { l.over = true })
	close(l.EOF)
}

func (l *Lines) change(what func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what()
	l.more.Broadcast()
}

// Wait waits for a line that contains text.
func (l *Lines) Wait(text string) Line {
	l.t.Helper()
	return l.WaitNth(1, text)
}

// WaitNth waits for the nth line that contains text.
func (l *Lines) WaitNth(n int, text string) Line {
	l.t.Helper()
	return l.waitNth(n, text, new(int))
}

// Next waits for a line that contains text, after the lines that earlier calls have waited for.
func (l *Lines) Next(text string) Line {
	l.t.Helper()
	return l.waitNth(1, text, &l.seen)
}

func (l *Lines) waitNth(n int, text string, checked *int) Line {
	l.t.Helper()
	late := false
	timer := time.AfterFunc(testutil.Patience, func() { l.change(func() { late = true }) })
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; ; l.more.Wait() {
		for *checked < len(l.collected) {
			line := l.collected[*checked]
			*checked++
			if strings.Contains(line.Text, text) {
				n--
			}
			if n == 0 {
				return line
			}
		}
		if l.over || late {
			l.t.Fatalf("%d lines with %q are missing in:\n%v", n, text, l.collected)
		}
	}
}

// Count returns how many lines contain text so far.
func (l *Lines) Count(text string) (n int) {
	for _, line := range l.All() {
		if strings.Contains(line.Text, text) {
			n++
		}
	}
	return n
}

// All returns a copy of the lines so far.
func (l *Lines) All() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.collected)
}

// Texts returns the lines so far without their times.
func (l *Lines) Texts() (texts []string) {
	for _, line := range l.All() {
		texts = append(texts, line.Text)
	}
	return texts
}
