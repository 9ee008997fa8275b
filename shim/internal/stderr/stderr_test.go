package stderr

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
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
		testutil.Deny(unix.SYS_PWRITEV2, unix.ENOSYS) // as on kernels before 4.6
		if _, err := unix.Pwritev2(1, nil, -1, unix.RWF_NOWAIT); err != unix.ENOSYS {
			fmt.Println("cannot deny pwritev2:", err)
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
	if strings.HasPrefix(string(out), "cannot deny") {
		t.Skip(string(out))
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestLines") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// sink is a Writer with the reader of its descriptor.
type sink struct {
	*Writer
	reader *os.File
	text   *bufio.Reader
}

// open returns a sink of a kind: the writer's descriptor blocks, and the reader does not. A full pipe has
// no room: it is full of empty lines, which want leaves out.
func open(t *testing.T, kind string) *sink {
	t.Helper()
	var reader, writer *os.File
	var err error
	switch kind {
	case "file":
		writer = testutil.Must(os.Create(t.TempDir() + "/log"))
		reader, err = os.Open(writer.Name())
	case "socket":
		fds := testutil.Must(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		unix.SetNonblock(fds[0], true)
		reader, writer = os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer")
	default:
		reader, writer, err = os.Pipe()
	}
	testutil.Must(0, err)
	fd := int(writer.Fd())                                    // which blocks from now on
	reader.SetReadDeadline(time.Now().Add(testutil.Patience)) // fails on a regular file, which needs none
	s := &sink{New(fd, warning), reader, bufio.NewReader(reader)}
	t.Cleanup(func() {
		if flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); flags&unix.O_NONBLOCK != 0 {
			t.Error("the descriptor does not block")
		}
		reader.Close() // from now on no write blocks
		s.drain(t)     // before the kernel may use the number again
		writer.Close()
	})
	if kind == "full pipe" {
		unix.SetNonblock(fd, true)
		for _, size := range []int{4096, 1} {
			for err = nil; err == nil; {
				_, err = unix.Write(fd, bytes.Repeat([]byte("\n"), size))
			}
		}
		unix.SetNonblock(fd, false)
	}
	return s
}

// drain waits until the goroutine has written the queue.
func (s *sink) drain(t *testing.T) {
	t.Helper()
	testutil.Eventually(t, "the queue is written", func() bool { return s.waiting.Load() == 0 })
}

// want reads the next lines, without empty lines.
func (s *sink) want(t *testing.T, lines ...string) {
	t.Helper()
	for _, want := range lines {
		got := "\n"
		for got == "\n" {
			got = testutil.Must(s.text.ReadString('\n'))
		}
		if got != want+"\n" {
			t.Errorf("got %.100q, want %.100q", got, want)
		}
	}
}

// TestLines tests lines between lines of the command, which shares the descriptor and the file offset:
// all arrive whole and in order.
func TestLines(t *testing.T) {
	for _, kind := range []string{"file", "pipe", "socket"} {
		s := open(t, kind)
		unix.Write(s.fd, []byte("the command's\n"))
		s.Line("one")
		s.drain(t)
		unix.Write(s.fd, []byte("the command's\n"))
		s.Line("two", "three")
		s.drain(t)
		s.want(t, "the command's", "one", "the command's", "two", "three")
		if os.Getenv(denyEnv) == "" && kind == "pipe" && s.queue != nil {
			t.Error("a line was queued for a descriptor with room")
		}
	}
}

// TestLittleRoom: of lines that are taken in part, the rest follows.
func TestLittleRoom(t *testing.T) {
	s := open(t, "pipe")
	unix.FcntlInt(uintptr(s.fd), unix.F_SETPIPE_SZ, 4096)
	lines := []string{strings.Repeat("a", 4000), strings.Repeat("b", 4000), strings.Repeat("c", 4000)}
	s.Line(lines...)
	s.want(t, lines...)
}

// TestStuck: without a reader Line does not wait, and the count of dropped lines takes their place.
func TestStuck(t *testing.T) {
	s := open(t, "full pipe")
	const many = 10 * maxQueued
	for i := range many {
		s.Line(fmt.Sprintf("line %d", i))
		testutil.Eventually(t, "the goroutine holds the first line", func() bool { return i > 0 || len(s.queue) == 0 })
	}
	queued := many - s.dropped
	if queued != maxQueued+1 {
		t.Errorf("%d lines were queued, want %d", queued, maxQueued+1)
	}
	for i := range queued {
		s.want(t, fmt.Sprintf("line %d", i))
	}
	s.drain(t)
	s.Line("last")
	s.Line("very last")
	s.want(t, fmt.Sprintf("warning: %d lines dropped: standard error was not read in time", many-queued), "last", "very last")
}

// TestFlushStuck tests Flush without a reader: Flush gives up.
func TestFlushStuck(t *testing.T) {
	s := open(t, "full pipe")
	s.Line("never read")
	s.Flush()
	if s.waiting.Load() != 1 {
		t.Error("no line was stuck")
	}
}

// TestFlushLate tests Flush with a goroutine that a busy machine runs late: a pipe with room gets its
// lines, in order.
func TestFlushLate(t *testing.T) {
	s := open(t, "pipe")
	s.queue = make(chan []byte, maxQueued)
	s.enqueue([]byte("one\n"))
	s.Line("two")
	time.AfterFunc(2*flushTimeout, s.run)
	s.Flush()
	if left := s.waiting.Load(); left != 0 {
		t.Errorf("%d lines are left", left)
	}
	s.want(t, "one", "two")
}

// TestFlush tests Flush with a reader that reads late. If it reads later than flushTimeout, the test
// shows nothing, and is tried again.
func TestFlush(t *testing.T) {
	for range 20 {
		s := open(t, "full pipe")
		s.Line("read late")
		time.AfterFunc(flushTimeout/10, func() { io.Copy(io.Discard, s.reader) })
		s.Flush()
		if s.waiting.Load() == 0 {
			return
		}
	}
	t.Error("Flush has not waited for the reader")
}

// TestCausedSIGPIPE tests writes without a reader: CausedSIGPIPE is true once, exactly if SIGPIPE
// arrives, and no later write raises SIGPIPE.
func TestCausedSIGPIPE(t *testing.T) {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, unix.SIGPIPE, unix.SIGWINCH)
	defer signal.Stop(signals)
	for _, kind := range []string{"pipe", "full pipe", "socket"} {
		s := open(t, kind)
		s.Line("one")
		s.reader.Close()
		for i := range 3 {
			s.drain(t)
			s.Line("two")
			s.drain(t)
			// The SIGPIPE of a write is pending when the write returns, before this mark.
			unix.Kill(unix.Getpid(), unix.SIGWINCH)
			arrived := false
			for <-signals == syscall.SIGPIPE {
				arrived = true
			}
			must := i == 0 && kind == "pipe" && s.queue == nil
			if caused := s.CausedSIGPIPE(); caused != arrived || must && !caused || i > 0 && caused {
				t.Errorf("%s, write %d: CausedSIGPIPE = %v, SIGPIPE arrived: %v", kind, i, caused, arrived)
			}
		}
		if s.dropped > 0 {
			t.Errorf("%s: %d lines dropped, want none: the reader is gone", kind, s.dropped)
		}
	}
}

// warning is a format of warnings.
func warning(text string) string { return "warning: " + text }

// TestNowhere tests a full disk and a closed descriptor: lines are lost.
func TestNowhere(t *testing.T) {
	full := testutil.Must(unix.Open("/dev/full", unix.O_WRONLY|unix.O_CLOEXEC, 0))
	defer unix.Close(full)
	for _, fd := range []int{full, -1} {
		w := New(fd, warning)
		w.Line("into the void")
		w.Flush()
		if left := w.waiting.Load(); left > 0 || fd == -1 && w.queue != nil {
			t.Errorf("descriptor %d: %d lines are left, or were queued for nothing", fd, left)
		}
	}
}

// TestPrintable: each text is one line of printable characters, of the length that a pipe takes whole.
func TestPrintable(t *testing.T) {
	s := open(t, "file")
	s.Line("a\x1b[2J\nforged")
	s.Line(strings.Repeat("x", MaxLine))
	s.drain(t)
	s.want(t, `a\x1b[2J\nforged`, strings.Repeat("x", MaxLine-1))
}

// TestFault: a fault of lameduck's own costs a line, and does not end the process.
func TestFault(t *testing.T) {
	(*Writer)(nil).writeBlocking([]byte("nowhere"))
}
