package stderr

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bound is what "at once" and "in a moment" may take on a busy machine, and
// timeout what a handshake may.
const (
	bound   = 2 * time.Second
	timeout = 20 * time.Second
)

// denied marks the test binary that runs without pwritev2(2).
const denied = "STDERR_TEST_DENIED"

func TestMain(m *testing.M) {
	if os.Getenv(denied) != "" {
		if err := denyPwritev2(); err != nil {
			fmt.Println("cannot deny pwritev2:", err)
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// denyPwritev2 makes it fail as on kernels before 4.6; see seccomp(2).
func denyPwritev2() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the system call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PWRITEV2},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	if _, err := unix.Pwritev2(1, nil, -1, unix.RWF_NOWAIT); err != unix.ENOSYS {
		return fmt.Errorf("it says %w", err)
	}
	return nil
}

// TestDenied runs the other tests where pwritev2 is denied.
func TestDenied(t *testing.T) {
	if os.Getenv(denied) != "" {
		t.Skip("inside")
	}
	cmd := exec.Command("/proc/self/exe", "-test.v")
	cmd.Env = append(os.Environ(), denied+"=1")
	out, err := cmd.CombinedOutput()
	if text, ok := strings.CutPrefix(string(out), "cannot deny"); ok {
		t.Skip("cannot deny", text)
	}
	if err != nil || !bytes.Contains(out, []byte("PASS: TestLines")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// sink is a descriptor to write to, and the reader of what was written.
type sink struct {
	*Writer
	reader int
	got    []byte // has been read, and not been asked for
	closed bool   // the reader is
}

// newSink takes both descriptors over. Only the reader's gets O_NONBLOCK.
func newSink(t *testing.T, fd, reader int, err error) *sink {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(reader, true)
	s := &sink{Writer: New(fd), reader: reader}
	before := flags(t, fd)
	t.Cleanup(func() {
		if now := flags(t, fd); now != before || now&unix.O_NONBLOCK != 0 {
			t.Errorf("the descriptor's flags were %#x and are %#x", before, now)
		}
		s.close()
		s.end(t) // the goroutine shall not write to whoever is given fd next
		unix.Close(fd)
	})
	return s
}

func flags(t *testing.T, fd int) int {
	t.Helper()
	now, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		t.Error(err)
	}
	return now
}

// close takes the reader away, whereupon no write blocks any more.
func (s *sink) close() {
	if !s.closed {
		unix.Close(s.reader)
		s.closed = true
	}
}

// end waits until the goroutine has written what is queued.
func (s *sink) end(t *testing.T) {
	t.Helper()
	poll(t, "the queue to be written", func() bool { return s.waiting.Load() == 0 })
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(timeout); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// more reads what there is, and is false where that is nothing.
func (s *sink) more() bool {
	buf := make([]byte, 1<<20)
	n, err := unix.Read(s.reader, buf)
	s.got = append(s.got, buf[:max(n, 0)]...)
	return n > 0 && err == nil
}

// next is the next line that was read, empty ones left out.
func (s *sink) next() (line string, ok bool) {
	s.got = bytes.TrimLeft(s.got, "\n")
	text, rest, ok := bytes.Cut(s.got, []byte("\n"))
	if ok {
		s.got = rest
	}
	return string(text), ok
}

// lines reads the next n lines.
func (s *sink) lines(t *testing.T, n int) (lines []string) {
	t.Helper()
	poll(t, fmt.Sprintf("%d lines", n), func() bool {
		for len(lines) < n {
			if line, ok := s.next(); ok {
				lines = append(lines, line)
			} else if !s.more() {
				return false
			}
		}
		return true
	})
	return lines
}

// The sinks that fill up when nobody reads: a pipe, a socket, a terminal.
var narrow = map[string]func(*testing.T) *sink{"pipe": pipe, "socket": socket, "terminal": terminal}

func pipe(t *testing.T) *sink {
	var fds [2]int
	err := unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return newSink(t, fds[1], fds[0], err)
}

func socket(t *testing.T) *sink {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return newSink(t, fds[1], fds[0], err)
}

// terminal is a new one that passes bytes on as they are; see pts(4).
func terminal(t *testing.T) *sink {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("no terminals: ", err)
	}
	number, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	fd, err := unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no terminals: ", err)
	}
	attr, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		attr.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(fd, unix.TCSETS, attr)
	}
	return newSink(t, fd, master, err)
}

// file is a regular one that has text already.
func file(t *testing.T, flags int) *sink {
	path := t.TempDir() + "/log"
	if err := os.WriteFile(path, []byte("older\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Seek(fd, 0, unix.SEEK_END)
	reader, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	unix.Seek(reader, int64(len("older\n")), unix.SEEK_SET)
	return newSink(t, fd, reader, err)
}

// TestLines: lines arrive whole, in order and between those of the command,
// which shares the descriptor and its place in the file.
func TestLines(t *testing.T) {
	kinds := map[string]func(*testing.T) *sink{
		"file":           func(t *testing.T) *sink { return file(t, 0) },
		"file to append": func(t *testing.T) *sink { return file(t, unix.O_APPEND) },
	}
	for name, open := range narrow {
		kinds[name] = open
	}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var want []string
			probe := []byte("can it be written without waiting?")
			_, err := unix.Pwritev2(s.fd, [][]byte{probe, []byte("\n")}, -1, unix.RWF_NOWAIT)
			if err == nil {
				want = append(want, string(probe))
			}
			for round := range 3 {
				command := fmt.Sprintf("the command's %d", round)
				unix.Write(s.fd, []byte(command+"\n"))
				want = append(want, command)
				for i := range 20 { // three rounds together are less than the queue
					line := fmt.Sprintf("%d.%d %s", round, i, strings.Repeat("x", 7*i))
					s.Line(line)
					want = append(want, line)
				}
				s.end(t)
			}
			if got := s.lines(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if err == nil && (name == "pipe" || name == "socket") && s.queue != nil {
				t.Error("there was room, and yet a line was queued")
			}
			if s.dropped > 0 || s.Broke() {
				t.Errorf("%d dropped, broken: %v", s.dropped, s.Broke())
			}
		})
	}
}

// fill makes any further write to the sink wait. What it writes are empty
// lines, which next leaves out.
func (s *sink) fill(t *testing.T) {
	t.Helper()
	unix.SetNonblock(s.fd, true)
	defer unix.SetNonblock(s.fd, false)
	room := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}
	poll(t, "it to be full", func() bool {
		for {
			if _, err := unix.Write(s.fd, bytes.Repeat([]byte("\n"), 4096)); err != nil {
				break
			}
		}
		n, err := unix.Poll(room, 50) // a terminal makes more room by and by
		return n == 0 && err == nil
	})
}

// TestStuck: where nobody reads, Line does not wait; what finds no room in the
// queue is counted, and the count stands where the lines are missing.
func TestStuck(t *testing.T) {
	const many = 20000
	for name, open := range narrow {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.fill(t)
			start := time.Now()
			for i := range many {
				s.Line(fmt.Sprintf("line %d", i))
			}
			if took := time.Since(start); took > bound {
				t.Errorf("%d lines took %v", many, took)
			}
			waiting := int(s.waiting.Load())
			if waiting < queued || waiting > queued+1 { // one may be in the goroutine's hand
				t.Errorf("%d lines wait", waiting)
			}
			s.more()                               // makes room,
			s.Line(fmt.Sprintf("line %d", many))   // but this shall not overtake what waits
			s.Line(fmt.Sprintf("line %d", many+1)) // nor this
			poll(t, "the queue to be written", func() bool { return !s.more() && s.waiting.Load() == 0 })
			s.Line(fmt.Sprintf("line %d", many+2)) // is preceded by a count, if one is due
			var got []string
			for next := ""; next != fmt.Sprintf("line %d", many+2); got = append(got, next) {
				next = s.lines(t, 1)[0]
			}
			if next := replay(t, got); next != many+3 {
				t.Errorf("%d lines are accounted for, want %d", next, many+3)
			}
		})
	}
}

// replay wants lines in order, where a count stands for what is missing, and
// returns the number of the next.
func replay(t *testing.T, lines []string) (next int) {
	t.Helper()
	for _, line := range lines {
		dropped := 0
		if fmt.Sscanf(line, "lameduck: %d lines dropped: standard error", &dropped); dropped > 0 {
			next += dropped
			continue
		}
		if line != fmt.Sprintf("line %d", next) {
			t.Errorf("got %q, want line %d", line, next)
		}
		next++
	}
	return next
}

// TestFlushStuck: the end does not wait for a reader that never comes.
func TestFlushStuck(t *testing.T) {
	for name, open := range narrow {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.fill(t)
			s.Line("never read")
			start := time.Now()
			s.Flush()
			if took := time.Since(start); took > patience+bound {
				t.Errorf("Flush took %v", took)
			}
			if s.waiting.Load() != 1 {
				t.Error("nothing was stuck")
			}
		})
	}
}

// TestFlush: it waits for a reader who is slow. One that needed longer than
// Flush has patience for shows nothing, and so it is tried again.
func TestFlush(t *testing.T) {
	for range 20 {
		s := pipe(t)
		s.fill(t)
		for range queued {
			s.Line("read in the end")
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for end := time.Now().Add(timeout); s.waiting.Load() > 0 && time.Now().Before(end); {
				s.more()
			}
		})
		start := time.Now()
		s.Flush()
		left, took := s.waiting.Load(), time.Since(start)
		reading.Wait()
		switch {
		case left == 0:
			return
		case took < patience:
			t.Fatalf("Flush returned after %v with %d lines left", took, left)
		}
	}
	t.Skip("the machine is too busy to tell")
}

// TestFlushNothing: there is nothing to wait for, and nothing to go wrong.
func TestFlushNothing(t *testing.T) {
	s := pipe(t)
	s.Flush()
	New(-1).Flush()
	s.Line("after all")
	if got := s.lines(t, 1)[0]; got != "after all" {
		t.Errorf("got %q", got)
	}
}

// pipes tells of the PIPE signals that the kernel sends us.
type pipes chan os.Signal

func catchPipes(t *testing.T) pipes {
	c := make(pipes, 100)
	signal.Notify(c, unix.SIGPIPE, unix.SIGWINCH)
	t.Cleanup(func() { signal.Stop(c) })
	return c
}

// came reports whether there was one since it was last asked. The PIPE of a
// write is there when the write returns; a WINCH that follows is handed over
// behind it.
func (c pipes) came(t *testing.T) (pipe bool) {
	t.Helper()
	unix.Kill(unix.Getpid(), unix.SIGWINCH)
	for {
		select {
		case s := <-c:
			if s == syscall.SIGWINCH {
				return pipe
			}
			pipe = true
		case <-time.After(timeout):
			t.Fatal("WINCH was lost")
		}
	}
}

// TestBroke: a write without a reader is told once, exactly where it brings a
// PIPE upon us, which so is known as our own; and it is the last one to a pipe.
func TestBroke(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *sink{"pipe": pipe, "socket": socket} {
		t.Run(name, func(t *testing.T) {
			signals := catchPipes(t)
			s := open(t)
			s.Line("somebody reads")
			s.end(t)
			if broke, came := s.Broke(), signals.came(t); broke || came {
				t.Errorf("with a reader: broke: %v, a PIPE came: %v", broke, came)
			}
			s.close()
			for i := range 3 {
				s.Line("nobody reads")
				s.end(t)
				must := i == 0 && name == "pipe" && s.queue == nil
				if broke, came := s.Broke(), signals.came(t); broke != came || must && !broke || i > 0 && broke {
					t.Errorf("write %d: broke: %v, a PIPE came: %v", i, broke, came)
				}
			}
			if s.dropped > 0 {
				t.Errorf("%d lines wait for a reader who will not come", s.dropped)
			}
		})
	}
}

// TestBrokeStuck: where lines wait when the reader goes, no PIPE comes.
func TestBrokeStuck(t *testing.T) {
	signals := catchPipes(t)
	s := pipe(t)
	s.fill(t)
	for range 10 {
		s.Line("nobody reads")
	}
	s.close()
	s.end(t)
	if broke, came := s.Broke(), signals.came(t); broke || came {
		t.Errorf("broke: %v, a PIPE came: %v", broke, came)
	}
}

// TestNowhere: a full disk and a closed descriptor take nothing, and do no harm.
func TestNowhere(t *testing.T) {
	full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer unix.Close(full)
	const closed = 1 << 20 // beyond the limit, so that nobody else is given it
	for name, fd := range map[string]int{"full": full, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			signals := catchPipes(t)
			w := New(fd)
			start := time.Now()
			for range 1000 {
				w.Line("into the void")
			}
			w.Flush()
			if took := time.Since(start); took > bound {
				t.Errorf("it took %v", took)
			}
			if broke, came := w.Broke(), signals.came(t); broke || came {
				t.Errorf("broke: %v, a PIPE came: %v", broke, came)
			}
			if name == "closed" && w.queue != nil {
				t.Error("lines were queued")
			}
			if w.waiting.Load() != 0 {
				t.Errorf("%d lines are left", w.waiting.Load())
			}
		})
	}
}

// TestLongLine: one too long to be written whole is cut, and is the only one.
// TestPrintable: a text is one line without escapes, however the text is written, and
// a character at the end is not cut.
func TestPrintable(t *testing.T) {
	s := file(t, 0)
	long := strings.Repeat("x", Longest-3) + "é!" // é would be cut
	for _, text := range []string{"a\x1b[2J\nforged\r\u009b\u202e\xff", `{"message":"\u001b[2J"}`, long} {
		s.Line(text)
	}
	s.end(t)
	want := []string{`a\x1b[2J\nforged\r\u009b\u202e\xff`, `{"message":"\u001b[2J"}`, strings.Repeat("x", Longest-3) + "é"}
	if got := s.lines(t, len(want)); !slices.Equal(got[:2], want[:2]) || got[2] != want[2] {
		t.Errorf("got\n%.100q\nwant\n%.100q", got, want)
	}
	s.Line(strings.Repeat("x", Longest-2) + "é")
	s.end(t)
	if got := s.lines(t, 1)[0]; got != strings.Repeat("x", Longest-2) {
		t.Errorf("it ends in %q", got[len(got)-5:])
	}
}

func TestLongLine(t *testing.T) {
	for name, open := range narrow {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for _, n := range []int{Longest - 2, Longest - 1, Longest, 10000} {
				s.Line(strings.Repeat("x", n))
				s.Line("next")
				got, want := s.lines(t, 2), min(n, Longest-1)
				if got[0] != strings.Repeat("x", want) || got[1] != "next" {
					t.Errorf("of %d bytes %d came, want %d; and then %q", n, len(got[0]), want, got[1])
				}
			}
		})
	}
}
