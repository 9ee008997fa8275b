package init_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// startShell starts an interactive bash, with job control, on a terminal.
func startShell(t *testing.T) *box.Screen {
	t.Helper()
	box.Needs(t, "bash")
	s := box.OnTerminal(t, false, "bash", "--norc", "--noprofile", "-i")
	s.WaitFor("$ ")
	return s
}

// catchOnTerminal runs lameduck with the catch helper on a terminal.
func catchOnTerminal(t *testing.T, pid1 bool, flags string) *box.Screen {
	s := box.OnTerminal(t, pid1, box.Lameduck(flags, box.Helper("catch")...)...)
	s.WaitFor("ready")
	return s
}

// TestTerminalKeys: the signals of typed keys and of a resize reach the command once.
func TestTerminalKeys(t *testing.T) {
	for _, pid1 := range []bool{true, false} {
		s := catchOnTerminal(t, pid1, "")
		s.Type(box.CtrlC)
		s.WaitFor("got INT")
		if err := pty.Setsize(s.TTY, &pty.Winsize{Rows: 30, Cols: 100}); err != nil {
			t.Fatal(err)
		}
		s.WaitFor("got WINCH")
		s.Type(box.CtrlZ)
		s.WaitFor("got TSTP")
		s.Type("exit 7\n")
		s.WantExit(7)
		for _, name := range []string{"got INT", "got WINCH", "got TSTP"} {
			if n := s.Count(name); n != 1 {
				t.Errorf("the command printed %q %d times, want once", name, n)
			}
		}
	}
}

// TestTerminalInHold: Ctrl-C goes to the command's group and does not end a hold; WINCH is a
// resize and not a stop signal, even with a rewrite of TERM to WINCH.
func TestTerminalInHold(t *testing.T) {
	s := catchOnTerminal(t, true, "-d 1 -r TERM:WINCH")
	pty.Setsize(s.TTY, &pty.Winsize{Rows: 30, Cols: 100})
	s.WaitFor("got WINCH")
	unix.Kill(s.Cmd.Process.Pid, unix.SIGTERM)
	s.WaitFor("holding 1 s")
	s.Type(box.CtrlC)
	testutil.Eventually(t, "INT and WINCH arrive, in whichever order", func() bool {
		return s.Count("got INT") == 1 && s.Count("got WINCH") == 2
	})
	s.Type("exit 0\n")
	s.WaitFor("(elapsed), sent WINCH")
	s.WantExit(0)
}

// TestTerminalJob: a shell stops, continues and ends lameduck together with the command.
func TestTerminalJob(t *testing.T) {
	s := startShell(t)
	s.Type("$LAMEDUCK sleep 1000\n")
	s.AwaitForeground("sleep")
	s.Type(box.CtrlZ)
	s.WaitFor("Stopped")
	s.Type("fg\n")
	s.AwaitForeground("sleep")
	s.Type(box.CtrlZ)
	s.WaitFor("Stopped")
	s.Type("bg; fg\n")
	s.AwaitForeground("sleep", "lameduck") // bash continues only stopped processes, and the command may be running again
	s.Type(box.CtrlC)
	s.WaitFor("$ ")
	s.Type("echo code $?\n")
	s.WaitFor("code 130")
	s.Type("exit 0\n")
	s.WantExit(0)
}

// TestTerminalLent: the command can read from the terminal when the shell has moved its job
// to the foreground, although no signal tells lameduck of the move.
func TestTerminalLent(t *testing.T) {
	cue := filepath.Join(t.TempDir(), "go")
	s := startShell(t)
	s.Type("$LAMEDUCK sh -c 'echo run''ning; until [ -e " + cue + " ]; do sleep 0.01; done; read x; echo it read $x' &\n")
	s.WaitFor("running")
	s.Type("fg\n")
	s.AwaitForeground("lameduck")
	if err := os.WriteFile(cue, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Type("words\n")
	s.WaitFor("it read words")
	s.Type("exit 0\n")
	s.WantExit(0)
}

// TestTerminalGivenBack: after lameduck, a script without job control can read from the
// terminal again.
func TestTerminalGivenBack(t *testing.T) {
	s := box.OnTerminal(t, false, "sh", "-c",
		`$LAMEDUCK sh -c 'echo inner; read x; echo "inner read $x"'; read y; echo "outer read $y"`)
	s.WaitFor("inner")
	s.Type("a\n")
	s.WaitFor("inner read a")
	s.Type("b\n")
	s.WaitFor("outer read b")
	s.WantExit(0)
}

// TestTerminalNested: under two lameducks, one inside the other, the command has the
// terminal.
func TestTerminalNested(t *testing.T) {
	s := box.OnTerminal(t, true, append([]string{box.Binary, "--", box.Binary, "--"}, box.Helper("catch")...)...)
	s.WaitFor("ready")
	s.Type(box.CtrlC)
	s.WaitFor("got INT")
	s.Type("exit 4\n")
	s.WantExit(4)
	if n := s.Count("got INT"); n != 1 {
		t.Errorf("the command got INT %d times, want once", n)
	}
}

// TestTerminalTostop: on a terminal that stops background processes when they write (stty
// tostop), the report does not stop lameduck.
func TestTerminalTostop(t *testing.T) {
	s := box.OnTerminal(t, false, box.Binary, "-d", "1", "sh", "-c",
		`stty tostop; trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done`)
	s.WaitFor("ready")
	unix.Kill(s.Cmd.Process.Pid, unix.SIGTERM)
	s.WaitFor("holding 1 s")
	s.WaitFor("(elapsed), sent TERM")
	s.WantExit(5)
}
