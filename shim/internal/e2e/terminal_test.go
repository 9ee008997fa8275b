package e2e

import (
	"bytes"
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

// screen is a terminal that a program runs on, and what it shows.
type screen struct {
	t   *testing.T
	tty *os.File // the side of who types
	cmd *exec.Cmd

	mu    sync.Mutex // the reader and the test share what follows
	shown bytes.Buffer
	seen  int // what an earlier wait has passed
	over  bool
}

// onScreen runs a command as the leader of a session on a terminal of its own;
// in new namespaces, as PID 1, if pid1 says so.
func onScreen(t *testing.T, pid1 bool, words ...string) *screen {
	t.Helper()
	if pid1 {
		netns.Need(t)
		words = self("stage", words...)
	}
	s := &screen{t: t, cmd: exec.Command(words[0], words[1:]...)}
	s.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PS1=$ ", "HOME=/", "TERM=dumb", "LAMEDUCK=" + binary}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if pid1 {
		s.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	var err error
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Skip("no terminal: ", err)
	}
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
		s.over = err != nil
		s.mu.Unlock()
		if err != nil { // EIO: the last program on the terminal is gone
			return
		}
	}
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until text is shown, after what earlier calls waited for.
func (s *screen) shows(text string) {
	s.t.Helper()
	var shown string
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		s.mu.Lock()
		shown = s.shown.String()
		at, over := strings.Index(shown[s.seen:], text), s.over
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

// count is how often text was shown in all.
func (s *screen) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.shown.String(), text)
}

// leaves waits for the end, and wants this exit code.
func (s *screen) leaves(code int) {
	s.t.Helper()
	timer := time.AfterFunc(testutil.Patience, func() { s.cmd.Process.Kill() })
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); !timer.Stop() || got != code {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Errorf("left with %d, want %d; the screen:\n%s", got, code, s.shown.String())
	}
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// catchOn is lameduck with the catch helper on a screen.
func catchOn(t *testing.T, pid1 bool, flags ...string) *screen {
	s := onScreen(t, pid1, append(append([]string{binary}, flags...), append([]string{"--"}, self("catch")...)...)...)
	s.shows("ready")
	return s
}

// bothWays runs a test as PID 1 and as an ordinary process.
func bothWays(t *testing.T, test func(t *testing.T, pid1 bool)) {
	t.Run("pid1", func(t *testing.T) { test(t, true) })
	t.Run("not pid1", func(t *testing.T) { test(t, false) })
}

// TestTerminalKeys: what is typed reaches the command, once.
func TestTerminalKeys(t *testing.T) {
	bothWays(t, func(t *testing.T, pid1 bool) {
		s := catchOn(t, pid1)
		s.types(ctrlC)
		s.shows("got INT")
		if err := pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
			t.Fatal(err)
		}
		s.shows("got WINCH")
		s.types(ctrlZ)
		s.shows("got TSTP")
		s.types("exit 7\n")
		s.leaves(7)
		for _, name := range []string{"got INT", "got WINCH", "got TSTP"} {
			if n := s.count(name); n != 1 {
				t.Errorf("%q %d times", name, n)
			}
		}
	})
}

// TestTerminalInHold: Ctrl-C goes to the command's group and ends no hold; WINCH
// is a resize and no stop signal, even where TERM is rewritten to it.
func TestTerminalInHold(t *testing.T) {
	s := catchOn(t, true, "-d", "1", "-r", "TERM:WINCH")
	pty.Setsize(s.tty, &pty.Winsize{Rows: 30, Cols: 100})
	s.shows("got WINCH")
	unix.Kill(s.cmd.Process.Pid, unix.SIGTERM)
	s.shows("holding 1 s")
	s.types(ctrlC)
	s.shows("got INT")
	s.shows("got WINCH")
	s.types("exit 0\n")
	s.shows("(elapsed); sent WINCH")
	s.leaves(0)
}

// TestTerminalText: text goes through as it is, end of file too.
func TestTerminalText(t *testing.T) {
	bothWays(t, func(t *testing.T, pid1 bool) {
		s := onScreen(t, pid1, binary, "sh", "-c", "stty -echo; echo ready; tac")
		s.shows("ready")
		s.types("one\ntwo\nthree\n" + ctrlD)
		s.shows("three\r\ntwo\r\none\r\n")
		s.leaves(0)
	})
}

// TestTerminalShell: an interactive shell under lameduck has job control.
func TestTerminalShell(t *testing.T) {
	needs(t, "bash")
	bothWays(t, func(t *testing.T, pid1 bool) {
		s := onScreen(t, pid1, binary, "bash", "--norc", "--noprofile", "-i")
		s.shows("$ ")
		s.types("case $- in *m*) echo job'-'control;; esac\n")
		s.shows("job-control")
		controlsJobs(t, s)
	})
}

// controlsJobs wants the interactive shell on the screen to stop, continue and interrupt
// a job, and then ends the shell.
func controlsJobs(t *testing.T, s *screen) {
	t.Helper()
	s.types("sleep 1000\n")
	s.shows("sleep 1000\r\n")
	awaitForeground(t, s, "sleep")
	s.types(ctrlZ)
	s.shows("Stopped")
	s.types("fg\n")
	awaitForeground(t, s, "sleep")
	s.types(ctrlC)
	s.shows("$ ")
	s.types("exit 3\n")
	s.leaves(3)
}

// awaitForeground waits until the leader of the terminal's foreground group is
// a program of one of these names.
func awaitForeground(t *testing.T, s *screen, names ...string) {
	t.Helper()
	var comm []byte
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		pgrp, err := unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP)
		if err != nil {
			t.Fatal(err)
		}
		comm, _ = os.ReadFile("/proc/" + strconv.Itoa(pgrp) + "/comm")
		if slices.Contains(names, strings.TrimSpace(string(comm))) {
			return
		}
	}
	t.Fatalf("in the foreground is %q, want %q", comm, names)
}

// TestTerminalJob: a shell stops, continues and ends a lameduck, and the command
// with it.
func TestTerminalJob(t *testing.T) {
	needs(t, "bash")
	s := onScreen(t, false, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.types("$LAMEDUCK sleep 1000\n")
	awaitForeground(t, s, "sleep")
	s.types(ctrlZ)
	s.shows("Stopped")
	s.types("fg\n")
	awaitForeground(t, s, "sleep")
	s.types(ctrlZ)
	s.shows("Stopped")
	s.types("bg; fg\n")
	awaitForeground(t, s, "sleep", "lameduck") // bash continues only what is stopped
	s.types(ctrlC)
	s.shows("$ ")
	s.types("echo code $?\n")
	s.shows("code 130")
	s.types("exit 0\n")
	s.leaves(0)
}

// TestTerminalQueued: what comes while the job is stopped waits, however much.
func TestTerminalQueued(t *testing.T) {
	needs(t, "bash")
	log := filepath.Join(t.TempDir(), "log")
	s := onScreen(t, false, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.types("$LAMEDUCK --log-level=debug -r 35:0 sleep 1000 2>" + log + "\n")
	awaitForeground(t, s, "sleep")
	s.types(ctrlZ)
	s.shows("Stopped")
	s.types("for i in {1..20}; do kill -35 %1; done; fg\n")
	awaitForeground(t, s, "sleep")
	got := 0
	testutil.Eventually(t, "all arrive", func() bool {
		text, _ := os.ReadFile(log)
		got = strings.Count(string(text), "running: RTMIN+1\n")
		return got >= 20
	})
	s.types(ctrlC)
	s.shows("$ ")
	if got != 20 {
		t.Errorf("sent 20, got %d", got)
	}
	s.types("exit 0\n")
	s.leaves(0)
}

// TestTerminalLent: a command that reads once its job was moved to the
// foreground, which nobody tells us, gets the terminal.
func TestTerminalLent(t *testing.T) {
	needs(t, "bash")
	cue := filepath.Join(t.TempDir(), "go")
	s := onScreen(t, false, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.types("$LAMEDUCK sh -c 'echo run''ning; until [ -e " + cue + " ]; do sleep 0.01; done; read x; echo it read $x' &\n")
	s.shows("running")
	s.types("fg\n")
	awaitForeground(t, s, "lameduck")
	if err := os.WriteFile(cue, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.types("words\n")
	s.shows("it read words")
	s.types("exit 0\n")
	s.leaves(0)
}

// TestTerminalGivenBack: who goes on after lameduck, without job control of its
// own, has the terminal again.
func TestTerminalGivenBack(t *testing.T) {
	s := onScreen(t, false, "sh", "-c", `$LAMEDUCK sh -c 'echo inner; read x; echo "inner read $x"'; read y; echo "outer read $y"`)
	s.shows("inner")
	s.types("a\n")
	s.shows("inner read a")
	s.types("b\n")
	s.shows("outer read b")
	s.leaves(0)
}

// TestTerminalNested: a lameduck in a lameduck hands the terminal on.
func TestTerminalNested(t *testing.T) {
	s := onScreen(t, true, append([]string{binary, "--", binary, "--"}, self("catch")...)...)
	s.shows("ready")
	s.types(ctrlC)
	s.shows("got INT")
	s.types("exit 4\n")
	s.leaves(4)
	if n := s.count("got INT"); n != 1 {
		t.Errorf("INT came %d times", n)
	}
}

// TestTerminalTostop: where writing from the background stops a program, our
// own report does not stop us.
func TestTerminalTostop(t *testing.T) {
	s := onScreen(t, false, binary, "-d", "1", "sh", "-c", `stty tostop; echo ready; trap 'exit 5' TERM; while :; do sleep 0.01; done`)
	s.shows("ready")
	unix.Kill(s.cmd.Process.Pid, unix.SIGTERM)
	s.shows("holding 1 s")
	s.shows("(elapsed); sent TERM")
	s.leaves(5)
}

// TestTerminalOfAnother: a terminal that is not the controlling one, or none, is
// left alone.
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
		t.Errorf("left with %d: %v", code, err)
	}
}
