package stderr

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// denyEnv is set in the test process that runs without pwritev2(2).
const denyEnv = "STDERR_TEST_DENIED"

func TestMain(m *testing.M) {
	if os.Getenv(denyEnv) != "" {
		err := testutil.Deny(unix.SYS_PWRITEV2, unix.ENOSYS) // as on kernels before 4.6
		if _, denied := unix.Pwritev2(1, nil, -1, unix.RWF_NOWAIT); err != nil || denied != unix.ENOSYS {
			fmt.Println("cannot deny pwritev2:", err, denied)
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// TestDenied runs the other tests in a process without pwritev2.
func TestDenied(t *testing.T) {
	if os.Getenv(denyEnv) != "" {
		t.Skip("in the test process of TestDenied")
	}
	cmd := exec.Command("/proc/self/exe", "-test.v")
	cmd.Env = append(os.Environ(), denyEnv+"=1")
	out, err := cmd.CombinedOutput()
	if text, ok := strings.CutPrefix(string(out), "cannot deny"); ok {
		t.Skip("cannot deny", text)
	}
	if err != nil || !bytes.Contains(out, []byte("PASS: TestLines")) {
		t.Errorf("%v:\n%s", err, out)
	}
}

// sink is a Writer with the reader of its descriptor.
type sink struct {
	*Writer
	reader int
	got    []byte // read from the descriptor, and not returned yet
	closed bool   // the reader
}

// newSink takes over both descriptors, and sets O_NONBLOCK on the reader alone. At the
// end of the test the flags of fd must be as before. The goroutine must end before fd is
// closed: the kernel may reuse the number.
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
		s.drain(t)
		unix.Close(fd)
	})
	return s
}

// TestFullSocket: of lines that a socket takes in part, the rest follows.
func TestFullSocket(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1) // the smallest: less than two lines
	}
	s := newSink(t, fds[0], fds[1], err)
	var want []string
	for _, letter := range []string{"a", "b", "c", "d"} {
		want = append(want, strings.Repeat(letter, 4000))
	}
	s.Line(want...)
	if got := s.lines(t, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %.5q", got)
	}
}

func flags(t *testing.T, fd int) int {
	t.Helper()
	now, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		t.Error(err)
	}
	return now
}

// close closes the reader. From then on no write blocks.
func (s *sink) close() {
	if !s.closed {
		unix.Close(s.reader)
		s.closed = true
	}
}

// drain waits until the goroutine has written the queue.
func (s *sink) drain(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, "the queue is written", func() bool { return s.waiting.Load() == 0 })
}

// read reads once, and returns false if no bytes came.
func (s *sink) read() bool {
	buf := make([]byte, 1<<20)
	n, err := unix.Read(s.reader, buf)
	s.got = append(s.got, buf[:max(n, 0)]...)
	return n > 0 && err == nil
}

// next returns the next line that was read. Empty lines are left out.
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
	testutil.Eventually(t, fmt.Sprintf("%d lines have arrived", n), func() bool {
		for len(lines) < n {
			if line, ok := s.next(); ok {
				lines = append(lines, line)
			} else if !s.read() {
				return false
			}
		}
		return true
	})
	return lines
}

// boundedSinks fill up without a reader.
var boundedSinks = map[string]func(*testing.T) *sink{"pipe": pipe, "socket": socket}

func pipe(t *testing.T) *sink {
	var fds [2]int
	err := unix.Pipe2(fds[:], unix.O_CLOEXEC)
	return newSink(t, fds[1], fds[0], err)
}

func socket(t *testing.T) *sink {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return newSink(t, fds[1], fds[0], err)
}

// file returns a regular file with earlier text.
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

// TestLines tests lines between lines of the command, which shares the descriptor and
// the file offset: all arrive whole and in order.
func TestLines(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *sink{
		"file":           func(t *testing.T) *sink { return file(t, 0) },
		"file to append": func(t *testing.T) *sink { return file(t, unix.O_APPEND) },
		"pipe":           pipe, "socket": socket,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var want []string
			for round := range 3 {
				command := fmt.Sprintf("the command's %d", round)
				unix.Write(s.fd, []byte(command+"\n"))
				want = append(want, command)
				for i := range 20 { // three rounds fit into the queue
					line := fmt.Sprintf("%d.%d %s", round, i, strings.Repeat("x", 7*i))
					s.Line(line)
					want = append(want, line)
				}
				s.drain(t)
			}
			if got := s.lines(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if os.Getenv(denyEnv) == "" && name == "pipe" && s.queue != nil {
				t.Error("a line was queued for a descriptor with room")
			}
			if s.dropped > 0 || s.CausedSIGPIPE() {
				t.Errorf("%d lines dropped; caused SIGPIPE: %v", s.dropped, s.CausedSIGPIPE())
			}
		})
	}
}

// fill writes empty lines, which next leaves out, until a further write would wait.
func (s *sink) fill(t *testing.T) {
	t.Helper()
	unix.SetNonblock(s.fd, true)
	defer unix.SetNonblock(s.fd, false)
	for _, size := range []int{4096, 1} {
		for err := error(nil); err == nil; {
			_, err = unix.Write(s.fd, bytes.Repeat([]byte("\n"), size))
		}
	}
}

// TestStuck tests Line without a reader: Line does not wait, dropped lines are counted,
// and the count is written in place of the dropped lines.
func TestStuck(t *testing.T) {
	const many = 20000
	for name, open := range boundedSinks {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.fill(t)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := sleeps()
			for i := range many {
				s.Line(fmt.Sprintf("line %d", i))
			}
			if slept := sleeps() - before; slept > many/10 { // a few times while the queue fills
				t.Errorf("%d lines waited %d times", many, slept)
			}
			waiting := int(s.waiting.Load())
			if waiting < maxQueued || waiting > maxQueued+1 { // the goroutine may hold one line
				t.Errorf("%d lines wait, want %d", waiting, maxQueued)
			}
			s.read() // makes room, but new lines must not overtake waiting lines
			s.Line(fmt.Sprintf("line %d", many))
			s.Line(fmt.Sprintf("line %d", many+1))
			testutil.Eventually(t, "the queue is written", func() bool { return !s.read() && s.waiting.Load() == 0 })
			s.Line(fmt.Sprintf("line %d", many+2)) // after a count, if lines were dropped
			var got []string
			for next := ""; next != fmt.Sprintf("line %d", many+2); got = append(got, next) {
				next = s.lines(t, 1)[0]
			}
			if next := replay(t, got); next != many+3 {
				t.Errorf("%d lines written or counted, want %d", next, many+3)
			}
		})
	}
}

// sleeps returns how often this thread has waited.
func sleeps() int64 {
	var usage unix.Rusage
	unix.Getrusage(unix.RUSAGE_THREAD, &usage)
	return usage.Nvcsw
}

// replay checks the order of lines, with counts in place of dropped lines, and returns
// the number of the next line.
func replay(t *testing.T, lines []string) (next int) {
	t.Helper()
	for _, line := range lines {
		dropped := 0
		fmt.Sscanf(line, "lameduck: %d lines dropped: standard error", &dropped)
		if dropped > 0 {
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

// TestFlushStuck tests Flush without a reader: Flush gives up.
func TestFlushStuck(t *testing.T) {
	for name, open := range boundedSinks {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.fill(t)
			s.Line("never read")
			s.Flush()
			if s.waiting.Load() != 1 {
				t.Error("no line was stuck")
			}
		})
	}
}

// TestFlushLate tests Flush with a goroutine that a busy machine runs late: a file gets its line.
func TestFlushLate(t *testing.T) {
	s := file(t, 0)
	s.queue, s.written = make(chan []byte, maxQueued), make(chan struct{})
	s.Line("late")
	time.AfterFunc(2*flushTimeout, s.run)
	s.Flush()
	if left := s.waiting.Load(); left != 0 {
		t.Errorf("%d lines are left", left)
	}
}

// TestFlush tests Flush with a slow reader. If the reader needs longer than
// flushTimeout, the test shows nothing, and is tried again.
func TestFlush(t *testing.T) {
	for range 20 {
		s := pipe(t)
		s.fill(t)
		for range maxQueued {
			s.Line("read late")
		}
		var reading sync.WaitGroup
		reading.Go(func() {
			for end := time.Now().Add(testutil.Patience); s.waiting.Load() > 0 && time.Now().Before(end); {
				s.read()
			}
		})
		start := time.Now()
		s.Flush()
		left, took := s.waiting.Load(), time.Since(start)
		reading.Wait()
		switch {
		case left == 0:
			return
		case took < flushTimeout:
			t.Fatalf("Flush returned after %v with %d lines left", took, left)
		}
	}
	t.Skip("the reader was slower than flushTimeout each time")
}

// sigpipes receives SIGPIPE, and SIGWINCH to mark the end.
type sigpipes chan os.Signal

func catchSIGPIPE(t *testing.T) sigpipes {
	c := make(sigpipes, 100)
	signal.Notify(c, unix.SIGPIPE, unix.SIGWINCH)
	t.Cleanup(func() { signal.Stop(c) })
	return c
}

// received reports whether SIGPIPE arrived since the last call. The SIGPIPE of a write
// is pending when the write returns; a SIGWINCH sent afterwards arrives later.
func (c sigpipes) received(t *testing.T) (pipe bool) {
	t.Helper()
	unix.Kill(unix.Getpid(), unix.SIGWINCH)
	for {
		select {
		case s := <-c:
			if s == syscall.SIGWINCH {
				return pipe
			}
			pipe = true
		case <-time.After(testutil.Patience):
			t.Fatal("SIGWINCH was lost")
		}
	}
}

// TestCausedSIGPIPE tests writes without a reader: CausedSIGPIPE is true once, exactly
// if SIGPIPE arrives, and no later write raises SIGPIPE.
func TestCausedSIGPIPE(t *testing.T) {
	for name, open := range boundedSinks {
		t.Run(name, func(t *testing.T) {
			signals := catchSIGPIPE(t)
			s := open(t)
			s.Line("read")
			s.drain(t)
			caused, arrived := s.CausedSIGPIPE(), signals.received(t)
			if caused || arrived {
				t.Errorf("with a reader: CausedSIGPIPE = %v, SIGPIPE arrived: %v; want neither", caused, arrived)
			}
			s.close()
			for i := range 3 {
				s.Line("not read")
				s.drain(t)
				must := i == 0 && name == "pipe" && s.queue == nil
				caused, arrived := s.CausedSIGPIPE(), signals.received(t)
				if caused != arrived || must && !caused || i > 0 && caused {
					t.Errorf("write %d: CausedSIGPIPE = %v, SIGPIPE arrived: %v", i, caused, arrived)
				}
			}
			if s.dropped > 0 {
				t.Errorf("%d lines dropped, want none: the reader is gone", s.dropped)
			}
		})
	}
}

// TestCausedSIGPIPEStuck tests lines that wait when the reader closes: no SIGPIPE.
func TestCausedSIGPIPEStuck(t *testing.T) {
	signals := catchSIGPIPE(t)
	s := pipe(t)
	s.fill(t)
	for range 10 {
		s.Line("not read")
	}
	s.close()
	s.drain(t)
	caused, arrived := s.CausedSIGPIPE(), signals.received(t)
	if caused || arrived {
		t.Errorf("CausedSIGPIPE = %v, SIGPIPE arrived: %v; want neither", caused, arrived)
	}
}

// TestNowhere tests a full disk and a closed descriptor: lines are lost, without SIGPIPE.
func TestNowhere(t *testing.T) {
	full, err := unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no /dev/full: ", err)
	}
	defer unix.Close(full)
	const closed = 1 << 20 // beyond the limit: never reused
	for name, fd := range map[string]int{"full": full, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			signals := catchSIGPIPE(t)
			w := New(fd)
			for range 1000 {
				w.Line("into the void")
			}
			w.Flush()
			caused, arrived := w.CausedSIGPIPE(), signals.received(t)
			if caused || arrived {
				t.Errorf("CausedSIGPIPE = %v, SIGPIPE arrived: %v; want neither", caused, arrived)
			}
			if name == "closed" && w.queue != nil {
				t.Error("lines were queued for a closed descriptor")
			}
			testutil.Eventually(t, "no line is left", func() bool { return w.waiting.Load() == 0 })
		})
	}
}

// TestPrintable tests escapes: each text is one line of printable characters, and a line
// is cut between two characters.
func TestPrintable(t *testing.T) {
	s := file(t, 0)
	long := strings.Repeat("x", MaxLine-3) + "é!" // é would be cut
	for _, text := range []string{"a\x1b[2J\nforged\r\u009b\u202e\xff", `{"message":"\u001b[2J"}`, long} {
		s.Line(text)
	}
	s.drain(t)
	want := []string{`a\x1b[2J\nforged\r\u009b\u202e\xff`, `{"message":"\u001b[2J"}`, strings.Repeat("x", MaxLine-3) + "é"}
	if got := s.lines(t, len(want)); !slices.Equal(got[:2], want[:2]) || got[2] != want[2] {
		t.Errorf("got\n%.100q\nwant\n%.100q", got, want)
	}
	s.Line(strings.Repeat("x", MaxLine-2) + "é")
	s.drain(t)
	if got := s.lines(t, 1)[0]; got != strings.Repeat("x", MaxLine-2) {
		t.Errorf("the line ends with %q", got[len(got)-5:])
	}
}
