package box

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// Screen is a terminal with a program, and the text that the terminal shows.
type Screen struct {
	t   *testing.T
	TTY *os.File // the keyboard's side
	Cmd *exec.Cmd

	mu     sync.Mutex // guards the fields below, shared by the reader and the test
	shown  bytes.Buffer
	seen   int // bytes up to the end of the last match of WaitFor
	closed bool
}

// OnTerminal runs a command as the leader of a session on a new terminal; with pid1,
// as PID 1 of new namespaces.
func OnTerminal(t *testing.T, pid1 bool, words ...string) *Screen {
	t.Helper()
	if pid1 {
		netns.Need(t)
		words = Helper("stage", append([]string{""}, words...)...)
	}
	s := &Screen{t: t, Cmd: exec.Command(words[0], words[1:]...)}
	s.Cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PS1=$ ", "HOME=/", "TERM=dumb", "LAMEDUCK=" + Binary}
	s.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if pid1 {
		s.Cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	}
	tty, err := pty.StartWithSize(s.Cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Skip("no terminal: ", err)
	}
	s.TTY = tty
	go s.read()
	t.Cleanup(func() {
		s.Cmd.Process.Kill()
		s.Cmd.Wait()
		s.TTY.Close()
	})
	return s
}

func (s *Screen) read() {
	buf := make([]byte, 4096)
	for {
		n, err := s.TTY.Read(buf)
		s.mu.Lock()
		s.shown.Write(buf[:n])
		s.closed = err != nil
		s.mu.Unlock()
		if err != nil { // EIO: the last program on the terminal has ended
			return
		}
	}
}

func (s *Screen) Type(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.TTY, text); err != nil {
		s.t.Fatal(err)
	}
}

// WaitFor waits until the terminal shows text, after the text of earlier calls.
func (s *Screen) WaitFor(text string) {
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

// Count returns how often the terminal has shown text since the start.
func (s *Screen) Count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.shown.String(), text)
}

// WantExit waits until the program ends, and checks the exit code.
func (s *Screen) WantExit(code int) {
	s.t.Helper()
	timer := time.AfterFunc(testutil.Patience, func() { s.Cmd.Process.Kill() })
	s.Cmd.Wait()
	if got := s.Cmd.ProcessState.ExitCode(); !timer.Stop() || got != code {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Errorf("exit code %d, want %d; the screen:\n%s", got, code, s.shown.String())
	}
}

const (
	CtrlC = "\x03"
	CtrlD = "\x04"
	CtrlZ = "\x1a"
)

// AwaitForeground waits until the leader of the terminal's foreground process group is a
// program with one of the names.
func (s *Screen) AwaitForeground(names ...string) {
	s.t.Helper()
	testutil.Eventually(s.t, fmt.Sprintf("one of %q leads the foreground process group", names), func() bool {
		pgrp, err := unix.IoctlGetInt(int(s.TTY.Fd()), unix.TIOCGPGRP)
		if err != nil {
			s.t.Fatal(err)
		}
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pgrp) + "/comm")
		return slices.Contains(names, strings.TrimSpace(string(comm)))
	})
}
