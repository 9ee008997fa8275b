package e2e

import (
	"bufio"
	"encoding/json"
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

// raceOptions avoids the second that the race detector waits at the exit of each helper.
const raceOptions = "GORACE=atexit_sleep_ms=0"

// box is a program between pipes: as a rule the built lameduck as PID 1 of new namespaces.
type box struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out, err *lines
	start    time.Time
}

// binary is the built lameduck.
var binary = testutil.Path("lameduck")

// needs skips a test where one of the programs is not installed.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
	}
}

// helperCommand returns the command line for a helper of the test binary.
func helperCommand(helper string, args ...string) []string {
	exe, _ := os.Executable()
	return append([]string{exe, "helper", helper}, args...)
}

// boot starts lameduck with args as PID 1. The environment is PATH and env.
func boot(t *testing.T, env []string, args ...string) *box {
	t.Helper()
	return bootStage(t, "stage", env, args...)
}

// bootStage is boot with another helper than "stage", which sets up the namespaces.
func bootStage(t *testing.T, stage string, env []string, args ...string) *box {
	t.Helper()
	b := newBox(t, stage, env, args...)
	b.run()
	return b
}

// newBox returns a box of lameduck before its start, for changes to box.cmd.
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

// newProgram returns a box of any program before its start.
func newProgram(t *testing.T, env []string, attr syscall.SysProcAttr, words ...string) *box {
	b := &box{t: t, cmd: exec.Command(words[0], words[1:]...)}
	b.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), raceOptions}, env...)
	b.cmd.SysProcAttr = &attr
	b.stdin = testutil.Must(b.cmd.StdinPipe())
	b.out, b.err = newLines(testutil.Must(b.cmd.StdoutPipe())), newLines(testutil.Must(b.cmd.StderrPipe()))
	return b
}

// run starts the program. The test's cleanup kills the program.
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

// waitExit waits until the program has exited and its output is closed, and returns the exit code.
func (b *box) waitExit() int {
	b.t.Helper()
	timer := time.AfterFunc(testutil.Patience, func() { b.cmd.Process.Kill() })
	<-b.out.eof
	<-b.err.eof
	b.cmd.Wait()
	if !timer.Stop() {
		b.t.Errorf("lameduck did not exit within %v; stderr:\n%v", testutil.Patience, b.err.all())
	}
	return b.cmd.ProcessState.ExitCode()
}

// wantExit is waitExit with a check of the exit code.
func (b *box) wantExit(code int) {
	b.t.Helper()
	got := b.waitExit()
	if got != code {
		b.t.Errorf("exit code %d, want %d; stderr:\n%v", got, code, b.err.all())
	}
}

// wantStderr fails unless the lines on standard error so far have text in them.
func (b *box) wantStderr(text string) {
	b.t.Helper()
	if got := fmt.Sprint(b.err.all()); !strings.Contains(got, text) {
		b.t.Errorf("stderr %s, want %q in it", got, text)
	}
}

// lines collects the lines of a pipe, with the time of each.
type lines struct {
	from io.Reader
	eof  chan struct{} // closed at the end of the pipe

	mu        sync.Mutex // guards the fields below, which the reader and the test share
	more      *sync.Cond
	collected []outputLine
	closed    bool
}

// outputLine is a line of a pipe, and the time of its arrival.
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

// waitUntil calls ok after each line, with l.mu held, until ok returns true. The failure
// message is "want " and what.
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
			t.Fatalf("want %s; got:\n%v", what, l.collected)
		}
		l.more.Wait()
	}
}

// all returns a copy of the lines so far.
func (l *lines) all() []outputLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.collected)
}

// String returns the text without the time.
func (s outputLine) String() string { return s.text }

// message returns the message of a line of lameduck's, in text or in JSON.
func (s outputLine) message() (message string, ok bool) {
	var r jsonReport
	if json.Unmarshal([]byte(s.text), &r) == nil {
		return r.Message, true
	}
	return strings.CutPrefix(s.text, "lameduck: ")
}
