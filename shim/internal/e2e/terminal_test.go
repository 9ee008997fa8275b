package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
	"golang.org/x/sys/unix"
)

// screen is a terminal with a program, and the text that the terminal shows.
type screen struct {
	t   *testing.T
	tty *os.File // the keyboard's side
	cmd *exec.Cmd

	mu     sync.Mutex // guards the fields below, shared by the reader and the test
	shown  bytes.Buffer
	seen   int // bytes up to the end of the last match of waitFor
	closed bool
}

// startOnTerminal runs a command as the leader of a session on a new terminal; with pid1,
// as PID 1 of new namespaces.
func startOnTerminal(t *testing.T, pid1 bool, words ...string) *screen {
	t.Helper()
	if pid1 {
		netns.Need(t)
		words = helperCommand("stage", words...)
	}
	s := &screen{t: t, cmd: exec.Command(words[0], words[1:]...)}
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PS1=$ ", "HOME=/", "TERM=dumb", "LAMEDUCK=" + binary}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if pid1 {
		s.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	tty, err := pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip("no terminal: ", err)
	}
	s.tty = tty
	go s.read()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.tty.Close()
	})
	return s
}

func (s *screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.shown.Write(buf[:n])
		s.closed = err != nil
		s.mu.Unlock()
		if err != nil { // EIO: the last program on the terminal has ended
			return
		}
	}
}

func (s *screen) typeText(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

// waitFor waits until the terminal shows text, after the text of earlier calls.
func (s *screen) waitFor(text string) {
	s.t.Helper()
	var shown string
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		s.mu.Lock()
		shown = s.shown.String()
		at, over := strings.Index(shown[s.seen:], text), s.closed
		if at >= 0 {
			s.seen += at + len(text)
		}
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		if over {
			break
		}
	}
	s.t.Fatalf("the screen does not show %q after the first %d bytes of:\n%s", text, s.seen, shown)
}

// count returns how often the terminal has shown text since the start.
func (s *screen) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.shown.String(), text)
}

// wantExit waits until the program ends, and checks the exit code.
func (s *screen) wantExit(code int) {
	s.t.Helper()
	timer := time.AfterFunc(testutil.Patience, func() { s.cmd.Process.Kill() })
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); !timer.Stop() || got != code {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Errorf("exit code %d, want %d; the screen:\n%s", got, code, s.shown.String())
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// startShell starts an interactive bash, with job control, on a terminal.
func startShell(t *testing.T) *screen {
	t.Helper()
	needs(t, "bash")
	s := startOnTerminal(t, false, "bash", "--norc", "--noprofile", "-i")
	s.waitFor("$ ")
	return s
}

// catchOnTerminal runs lameduck with the catch helper on a terminal.
func catchOnTerminal(t *testing.T, pid1 bool, flags ...string) *screen {
	s := startOnTerminal(t, pid1, append(append([]string{binary}, flags...), append([]string{"--"}, helperCommand("catch")...)...)...)
	s.waitFor("ready")
	return s
}

// asPID1AndNot runs a test twice, with lameduck as PID 1 and as an ordinary process.
func asPID1AndNot(t *testing.T, test func(t *testing.T, pid1 bool)) {
	t.Run("pid1", func(t *testing.T) { test(t, true) })
	t.Run("not pid1", func(t *testing.T) { test(t, false) })
}

// TestTerminalKeys: the signals of typed keys and of a resize reach the command once.
func TestTerminalKeys(t *testing.T) {
	asPID1AndNot(t, func(t *testing.T, pid1 bool) {
		s := catchOnTerminal(t, pid1)
		s.typeText(ctrlC)
		s.waitFor("got INT")
		if err := pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
			t.Fatal(err)
		}
		s.waitFor("got WINCH")
		s.typeText(ctrlZ)
		s.waitFor("got TSTP")
		s.typeText("exit 7\n")
		s.wantExit(7)
		for _, name := range []string{"got INT", "got WINCH", "got TSTP"} {
			if n := s.count(name); n != 1 {
				t.Errorf("the command printed %q %d times, want once", name, n)
			}
		}
	})
}

// TestTerminalInHold: Ctrl-C goes to the command's group and does not end a hold; WINCH is a
// resize and not a stop signal, even with a rewrite of TERM to WINCH.
func TestTerminalInHold(t *testing.T) {
	s := catchOnTerminal(t, true, "-d", "1", "-r", "TERM:WINCH")
	pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
	s.waitFor("got WINCH")
	unix.Kill(s.cmd.Process.Pid, unix.SIGTERM)
	s.waitFor("holding 1 s")
	s.typeText(ctrlC)
	s.waitFor("got INT")
	s.waitFor("got WINCH")
	s.typeText("exit 0\n")
	s.waitFor("(elapsed), sent WINCH")
	s.wantExit(0)
}

// TestTerminalText: text and end of file reach the command unchanged.
func TestTerminalText(t *testing.T) {
	asPID1AndNot(t, func(t *testing.T, pid1 bool) {
		s := startOnTerminal(t, pid1, binary, "sh", "-c", "stty -echo; echo ready; tac")
		s.waitFor("ready")
		s.typeText("one\ntwo\nthree\n" + ctrlD)
		s.waitFor("three\r\ntwo\r\none\r\n")
		s.wantExit(0)
	})
}

// TestTerminalShell: an interactive shell under lameduck has job control.
func TestTerminalShell(t *testing.T) {
	needs(t, "bash")
	asPID1AndNot(t, func(t *testing.T, pid1 bool) {
		s := startOnTerminal(t, pid1, binary, "bash", "--norc", "--noprofile", "-i")
		s.waitFor("$ ")
		s.typeText("case $- in *m*) echo job'-'control;; esac\n")
		s.waitFor("job-control")
		wantJobControl(t, s)
	})
}

// wantJobControl checks that the shell on the terminal can stop, continue and interrupt a job,
// and then ends the shell.
func wantJobControl(t *testing.T, s *screen) {
	t.Helper()
	s.typeText("sleep 1000\n")
	s.waitFor("sleep 1000\r\n")
	awaitForeground(t, s, "sleep")
	s.typeText(ctrlZ)
	s.waitFor("Stopped")
	s.typeText("fg\n")
	awaitForeground(t, s, "sleep")
	s.typeText(ctrlC)
	s.waitFor("$ ")
	s.typeText("exit 3\n")
	s.wantExit(3)
}

// awaitForeground waits until the leader of the terminal's foreground process group is a
// program with one of the names.
func awaitForeground(t *testing.T, s *screen, names ...string) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("one of %q leads the foreground process group", names), func() bool {
		pgrp, err := unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			t.Fatal(err)
		}
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pgrp) + "/comm")
		return slices.Contains(names, strings.TrimSpace(string(comm)))
	})
}

// TestTerminalJob: a shell stops, continues and ends lameduck together with the command.
func TestTerminalJob(t *testing.T) {
	s := startShell(t)
	s.typeText("$LAMEDUCK sleep 1000\n")
	awaitForeground(t, s, "sleep")
	s.typeText(ctrlZ)
	s.waitFor("Stopped")
	s.typeText("fg\n")
	awaitForeground(t, s, "sleep")
	s.typeText(ctrlZ)
	s.waitFor("Stopped")
	s.typeText("bg; fg\n")
	awaitForeground(t, s, "sleep", "lameduck") // bash continues only stopped processes, and the command may be running again
	s.typeText(ctrlC)
	s.waitFor("$ ")
	s.typeText("echo code $?\n")
	s.waitFor("code 130")
	s.typeText("exit 0\n")
	s.wantExit(0)
}

// TestTerminalQueued: real-time signals that arrive while the job is stopped are queued, and
// none is lost.
func TestTerminalQueued(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	s := startShell(t)
	s.typeText("$LAMEDUCK --log-level=debug -r 35:0 sleep 1000 2>" + log + "\n")
	awaitForeground(t, s, "sleep")
	s.typeText(ctrlZ)
	s.waitFor("Stopped")
	s.typeText("for i in {1..20}; do kill -35 %1; done; fg\n")
	awaitForeground(t, s, "sleep")
	got := 0
	testutil.Eventually(t, "every signal has arrived", func() bool {
		text, _ := os.ReadFile(log)
		got = strings.Count(string(text), "running: RTMIN+1\n")
		return got >= 20
	})
	s.typeText(ctrlC)
	s.waitFor("$ ")
	if got != 20 {
		t.Errorf("sent 20 signals, lameduck got %d", got)
	}
	s.typeText("exit 0\n")
	s.wantExit(0)
}

// TestTerminalLent: the command can read from the terminal when the shell has moved its job
// to the foreground, although no signal tells lameduck of the move.
func TestTerminalLent(t *testing.T) {
	cue := filepath.Join(t.TempDir(), "go")
	s := startShell(t)
	s.typeText("$LAMEDUCK sh -c 'echo run''ning; until [ -e " + cue + " ]; do sleep 0.01; done; read x; echo it read $x' &\n")
	s.waitFor("running")
	s.typeText("fg\n")
	awaitForeground(t, s, "lameduck")
	if err := os.WriteFile(cue, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.typeText("words\n")
	s.waitFor("it read words")
	s.typeText("exit 0\n")
	s.wantExit(0)
}

// TestTerminalGivenBack: after lameduck, a script without job control can read from the
// terminal again.
func TestTerminalGivenBack(t *testing.T) {
	s := startOnTerminal(t, false, "sh", "-c", `$LAMEDUCK sh -c 'echo inner; read x; echo "inner read $x"'; read y; echo "outer read $y"`)
	s.waitFor("inner")
	s.typeText("a\n")
	s.waitFor("inner read a")
	s.typeText("b\n")
	s.waitFor("outer read b")
	s.wantExit(0)
}

// TestTerminalNested: under two lameducks, one inside the other, the command has the
// terminal.
func TestTerminalNested(t *testing.T) {
	s := startOnTerminal(t, true, append([]string{binary, "--", binary, "--"}, helperCommand("catch")...)...)
	s.waitFor("ready")
	s.typeText(ctrlC)
	s.waitFor("got INT")
	s.typeText("exit 4\n")
	s.wantExit(4)
	if n := s.count("got INT"); n != 1 {
		t.Errorf("the command got INT %d times, want once", n)
	}
}

// TestTerminalTostop: on a terminal that stops background processes when they write (stty
// tostop), the report does not stop lameduck.
func TestTerminalTostop(t *testing.T) {
	s := startOnTerminal(t, false, binary, "-d", "1", "sh", "-c", `stty tostop; echo ready; trap 'exit 5' TERM; while :; do sleep 0.01; done`)
	s.waitFor("ready")
	unix.Kill(s.cmd.Process.Pid, unix.SIGTERM)
	s.waitFor("holding 1 s")
	s.waitFor("(elapsed), sent TERM")
	s.wantExit(5)
}

// TestTerminalOfAnother: lameduck works with standard input on a terminal that is not its
// controlling terminal.
func TestTerminalOfAnother(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Skip("no terminal: ", err)
	}
	defer ptmx.Close()
	cmd := exec.Command(binary, "sh", "-c", "tty >&2; exit 6")
	cmd.Stdin, cmd.SysProcAttr = tty, &syscall.SysProcAttr{Setsid: true}
	err = cmd.Run()
	tty.Close()
	if code := cmd.ProcessState.ExitCode(); code != 6 {
		t.Errorf("exit code %d: %v", code, err)
	}
}
