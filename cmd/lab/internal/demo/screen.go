package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// screen shows the rows: on a terminal while the contenders play, and elsewhere at the end.
type screen struct {
	out   io.Writer
	live  bool
	s     *symbols
	drawn int // lines on the screen that the next drawing replaces
}

func newScreen(out io.Writer) *screen {
	c := &screen{out: out, s: &plain}
	width := columnsOf(out)
	c.live = width >= 80
	if width > 0 && os.Getenv("NO_COLOR") == "" {
		c.s = &colored
	}
	return c
}

// columnsOf returns the width of a terminal that can move its cursor, or 0; see
// ioctl_tty(2).
func columnsOf(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" {
		return 0
	}
	var size struct{ rows, columns, x, y uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0
	}
	return int(size.columns)
}

// watch draws the rows until the returned function is called, which draws the rows for
// the last time, or erases the rows: a run that does not count is not shown.
func (c *screen) watch(rows []*row, lag time.Duration) (end func(counts bool)) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.animate(rows, lag, done)
	}()
	return func(counts bool) {
		close(done)
		<-ended
		c.erase()
		if counts {
			c.draw(rows, lag)
		}
	}
}

// animate draws the rows again and again until done is closed.
func (c *screen) animate(rows []*row, lag time.Duration, done <-chan struct{}) {
	ticks := time.NewTicker(column / 2)
	defer ticks.Stop()
	for c.live {
		select {
		case <-ticks.C:
			c.draw(rows, lag)
		case <-done:
			return
		}
	}
}

// draw draws the marks and the rows, in place of the last drawing.
func (c *screen) draw(rows []*row, lag time.Duration) {
	c.erase()
	lines := marks(lag)
	for _, r := range rows {
		lines = append(lines, r.line(c.s))
	}
	fmt.Fprintln(c.out, strings.Join(lines, "\n"))
	c.drawn = len(lines)
}

// erase erases the last drawing from a terminal.
func (c *screen) erase() {
	if c.live && c.drawn > 0 {
		fmt.Fprintf(c.out, "\x1b[%dA\x1b[J", c.drawn)
	}
	c.drawn = 0
}

// marks are the lines above the rows.
func marks(lag time.Duration) []string {
	stop := nameWidth + int(before/column)
	removed := stop + int(lag/column)
	return []string{
		fmt.Sprintf("%*s%-*s%s", stop, "", removed-stop, "stop", "the balancer learns of it"),
		fmt.Sprintf("%*s%-*s%s", stop, "", removed-stop, "|", "|"),
	}
}
