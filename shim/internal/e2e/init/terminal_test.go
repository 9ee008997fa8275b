package init_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// catchOnTerminal runs lameduck with the catch helper on a terminal.
func catchOnTerminal(t *testing.T, pid1 bool, flags string) *box.Box {
	b := box.OnTerminal(t, pid1, box.Lameduck(flags, box.Helper("catch")...)...)
	b.WaitFor("ready")
	return b
}

// TestTerminalKeys: the signals of typed keys and of a resize reach the command once, also through
// two lameducks, one inside the other.
func TestTerminalKeys(t *testing.T) {
	for flags, pid1 := range map[string]bool{"": true, "--delay=1": false, box.Binary: true} {
		b := catchOnTerminal(t, pid1, flags)
		b.Type(box.CtrlC)
		b.WaitFor("got INT")
		testutil.Must(0, pty.Setsize(b.TTY, &pty.Winsize{Rows: 30, Cols: 100}))
		b.WaitFor("got WINCH")
		b.Type(box.CtrlZ)
		b.WaitFor("got TSTP")
		b.Send("exit 7")
		b.WantExit(7)
		for _, name := range []string{"got INT", "got WINCH", "got TSTP"} {
			if n := b.Out.Count(name); n != 1 {
				t.Errorf("the command printed %q %d times, want once", name, n)
			}
		}
	}
}

// TestTerminalInHold: Ctrl-C goes to the command's group and does not end a hold; WINCH is a
// resize and not a stop signal, even with a rewrite of TERM to WINCH.
func TestTerminalInHold(t *testing.T) {
	b := catchOnTerminal(t, true, "-d 1 -r TERM:WINCH")
	pty.Setsize(b.TTY, &pty.Winsize{Rows: 30, Cols: 100})
	b.WaitFor("got WINCH")
	b.Trigger()
	b.Type(box.CtrlC)
	testutil.Eventually(t, "INT and WINCH arrive, in whichever order", func() bool {
		return b.Out.Count("got INT") == 1 && b.Out.Count("got WINCH") == 2
	})
	b.Send("exit 0")
	b.WantExit(0)
	if r := b.Report(); r.Ended != "elapsed" || r.Signals() != "WINCH" {
		t.Errorf("report %+v", r)
	}
}

// TestTerminalLent: the command can read from the terminal when the shell has moved its job
// to the foreground, although no signal tells lameduck of the move.
func TestTerminalLent(t *testing.T) {
	cue := filepath.Join(t.TempDir(), "go")
	b := box.Shell(t, false)
	b.Send("$LAMEDUCK sh -c 'echo run''ning; until [ -e " + cue + " ]; do sleep 0.01; done; read x; echo it read $x' &")
	b.WaitFor("running")
	b.Send("fg")
	b.AwaitForeground("lameduck")
	testutil.Must(0, os.WriteFile(cue, nil, 0o644))
	b.Send("words")
	b.WaitFor("it read words")
	b.Send("exit 0")
	b.WantExit(0)
}

// TestTerminalGivenBack: after lameduck, a script without job control can read from the
// terminal again.
func TestTerminalGivenBack(t *testing.T) {
	b := box.OnTerminal(t, false, "sh", "-c",
		`$LAMEDUCK sh -c 'echo inner; read x; echo "inner read $x"'; read y; echo "outer read $y"`)
	b.WaitFor("inner")
	b.Send("a")
	b.WaitFor("inner read a")
	b.Send("b")
	b.WaitFor("outer read b")
	b.WantExit(0)
}

// TestTerminalTostop: on a terminal that stops background processes when they write (stty
// tostop), the report does not stop lameduck.
func TestTerminalTostop(t *testing.T) {
	b := box.OnTerminal(t, false, box.Binary, "-d", "1", "sh", "-c",
		`stty tostop; trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done`)
	b.WaitFor("ready")
	b.Trigger()
	b.WantExit(5)
	if r := b.Report(); r.Ended != "elapsed" {
		t.Errorf("report %+v", r)
	}
}
