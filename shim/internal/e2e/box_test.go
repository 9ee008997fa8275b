package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// raceOptions spares each helper a second at its end under the race detector.
const raceOptions = "GORACE=atexit_sleep_ms=0"

// box is the built lameduck running as PID 1 of new namespaces.
type box struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out, err *lines
	start    time.Time
}

// binary is the built lameduck.
var binary = testutil.Path("lameduck")

// needs skips a test where one of these programs is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// helperCommand is the test binary as a command.
func helperCommand(helper string, args ...string) []string {
	exe, _ := os.Executable()
	return append([]string{exe, "helper", helper}, args...)
}

// boot starts lameduck with args as PID 1, its environment being PATH and env.
func boot(t *testing.T, env []string, args ...string) *box {
	t.Helper()
	return bootStage(t, "stage", env, args...)
}

func bootStage(t *testing.T, stage string, env []string, args ...string) *box {
	t.Helper()
	b := newBox(t, stage, env, args...)
	b.run()
	return b
}

// newBox is a box that has not been started, for those who want to change it.
func newBox(t *testing.T, stage string, env []string, args ...string) *box {
	t.Helper()
	netns.Need(t)
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v: make build first", err)
	}
	return newProgram(t, env, asPID1, helperCommand(stage, append([]string{binary}, args...)...)...)
}

// asPID1 starts the first process of new namespaces.
var asPID1 = syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}

// newProgram is a box of any program, between pipes.
func newProgram(t *testing.T, env []string, attr syscall.SysProcAttr, words ...string) *box {
	b := &box{t: t, cmd: exec.Command(words[0], words[1:]...)}
	b.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), raceOptions}, env...)
	b.cmd.SysProcAttr = &attr
	b.stdin = testutil.Must(b.cmd.StdinPipe())
	b.out, b.err = newLines(testutil.Must(b.cmd.StdoutPipe())), newLines(testutil.Must(b.cmd.StderrPipe()))
	return b
}

func (b *box) run() {
	b.t.Helper()
	b.start = time.Now()
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go b.out.read()
	go b.err.read()
	b.t.Cleanup(func() { b.cmd.Process.Kill() })
}

// signal sends s to lameduck.
func (b *box) signal(s sig.Signal) {
	b.t.Helper()
	if err := unix.Kill(b.cmd.Process.Pid, unix.Signal(s)); err != nil {
		b.t.Errorf("cannot send %v: %v", s, err)
	}
}

// sendLine writes a line to the command's standard input.
func (b *box) sendLine(command string) { fmt.Fprintln(b.stdin, command) }

// waitExit waits for the end and is lameduck's exit code.
func (b *box) waitExit() int {
	b.t.Helper()
	timer := time.AfterFunc(testutil.Patience, func() { b.cmd.Process.Kill() })
	<-b.out.eof
	<-b.err.eof
	b.cmd.Wait()
	if !timer.Stop() {
		b.t.Errorf("lameduck does not end; it said:\n%v", b.err.all())
	}
	return b.cmd.ProcessState.ExitCode()
}

// wantExit is leaves with a check.
func (b *box) wantExit(code int) {
	b.t.Helper()
	if got := b.waitExit(); got != code {
		b.t.Errorf("left with %d, want %d; it said:\n%v", got, code, b.err.all())
	}
}

// lines collects what a pipe says, and when.
type lines struct {
	from io.Reader
	eof  chan struct{}

	mu        sync.Mutex // the reader and the test share what follows
	more      *sync.Cond
	collected []outputLine
	closed    bool
}

type outputLine struct {
	at   time.Time
	text string
}

func newLines(from io.Reader) *lines {
	l := &lines{from: from, eof: make(chan struct{})}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *lines) read() {
	in := bufio.NewScanner(l.from)
	for in.Scan() {
		l.mu.Lock()
		l.collected = append(l.collected, outputLine{time.Now(), in.Text()})
		l.more.Broadcast()
		l.mu.Unlock()
	}
	l.mu.Lock()
	l.closed = true
	l.more.Broadcast()
	l.mu.Unlock()
	close(l.eof)
}

// wait waits for a line that contains text.
func (l *lines) wait(t *testing.T, text string) (found outputLine) {
	t.Helper()
	l.waitUntil(t, fmt.Sprintf("a line with %q", text), func() bool {
		i := slices.IndexFunc(l.collected, func(s outputLine) bool { return strings.Contains(s.text, text) })
		if i >= 0 {
			found = l.collected[i]
		}
		return i >= 0
	})
	return found
}

// waitCount waits until there are n lines.
func (l *lines) waitCount(t *testing.T, n int) {
	t.Helper()
	l.waitUntil(t, fmt.Sprintf("%d lines", n), func() bool { return len(l.collected) >= n })
}

// waitUntil waits until what is said satisfies ok.
func (l *lines) waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(testutil.Patience, func() {
		l.mu.Lock()
		late = true
		l.more.Broadcast()
		l.mu.Unlock()
	})
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ok() {
		if l.closed || late {
			t.Fatalf("want %s; said:\n%v", what, l.collected)
		}
		l.more.Wait()
	}
}

func (l *lines) all() []outputLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.collected)
}

// String is the line alone.
func (s outputLine) String() string { return s.text }
