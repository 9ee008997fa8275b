package dropin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// askTTY makes a shell print whether the shell has a controlling terminal.
const askTTY = `if true 2>/dev/null </dev/tty; then echo "$0: yes"; else echo "$0: no"; fi`

// TestDropinTerminal: dumb-init leaves the terminal to its command's session. The HUP and
// CONT with which the kernel notifies dumb-init are not passed on; later HUPs and CONTs are.
func TestDropinTerminal(t *testing.T) {
	for _, name := range []string{"dumb-init", "tini"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			s := box.OnTerminal(t, true, append([]string{init, "--"}, box.Helper("catch")...)...)
			s.WaitFor("ready")
			sent := []unix.Signal{unix.SIGHUP, unix.SIGCONT, unix.SIGHUP, unix.SIGCONT}
			for _, signal := range sent {
				unix.Kill(s.Cmd.Process.Pid, signal)
				s.WaitFor("got " + strings.TrimPrefix(unix.SignalName(signal), "SIG"))
			}
			s.Type(box.CtrlC)
			s.WaitFor("got INT")
			s.Type("exit 7\n")
			s.WantExit(7)
			if n := s.Count("got "); n != len(sent)+1 {
				t.Errorf("%d signals arrived, want %d", n, len(sent)+1)
			}
		})
	}
}

// TestDropinTerminalOfAnother: dumb-init makes a terminal the controlling terminal of its
// command only where no other session has the terminal. TIOCSCTTY with the argument 1 and
// CAP_SYS_ADMIN would take the terminal from the other session for good.
func TestDropinTerminalOfAnother(t *testing.T) {
	box.Needs(t, "setsid")
	for how, script := range map[string]string{
		"in the shell's session":  `"$INIT" sh -c "$ASK" command`,
		"in a session of its own": `setsid -w "$INIT" sh -c "$ASK" command`,
	} {
		t.Run(how, func(t *testing.T) {
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				s := box.OnTerminal(t, false, "env", "INIT="+init, "ASK="+askTTY, "sh", "-c", script+`; sh -c "$ASK" shell`)
				s.WaitFor("command: no")
				s.WaitFor("shell: yes")
				s.WantExit(0)
			})
		})
	}
}

// TestDropinTerminalOfNobody: a terminal on standard input without a session becomes the
// controlling terminal of the command.
func TestDropinTerminalOfNobody(t *testing.T) {
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		ptmx, tty, err := pty.Open()
		if err != nil {
			t.Skip("no terminal: ", err)
		}
		defer ptmx.Close()
		defer tty.Close()
		cmd := exec.Command(init, "sh", "-c", askTTY, "command")
		cmd.Stdin = tty
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if out, err := cmd.Output(); err != nil || string(out) != "command: yes\n" {
			t.Errorf("output %q, %v", out, err)
		}
	})
}

// TestDropinTerminalScript: a script without an interpreter line has the terminal too (the
// kernel refuses to execute such a file, and the init executes the shell instead). Text and
// end of file (Ctrl-D) pass the terminal unchanged.
func TestDropinTerminalScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	testutil.Must(0, os.WriteFile(script, []byte(askTTY), 0o755))
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			s := box.OnTerminal(t, true, init, script)
			s.WaitFor("script: yes")
			s.WantExit(0)
			s = box.OnTerminal(t, false, init, "--", "sh", "-c", "stty -echo; echo ready; tac")
			s.WaitFor("ready")
			s.Type("1\n2\n3\n" + box.CtrlD)
			s.WaitFor("3\r\n2\r\n1\r\n")
			s.WantExit(0)
		})
	}
}

// TestDropinTerminalShell: an interactive shell has job control. (catatonit is left out: it
// blocks the terminal stop signals for its command.) Under such a shell, dumb-init -c and its
// command are one foreground job: Ctrl-Z stops both, and fg continues both.
func TestDropinTerminalShell(t *testing.T) {
	box.Needs(t, "bash")
	shell := []string{"bash", "--norc", "--noprofile", "-i"}
	for _, call := range []string{"tini --", "dumb-init --", "dumb-init -c"} {
		onEachCall(t, call, func(t *testing.T, s box.Setup, flags string) {
			for _, pid1 := range []bool{true, false} {
				s := box.OnTerminal(t, pid1, append([]string{s.Init, flags}, shell...)...)
				s.WaitFor("$ ")
				wantJobControl(s)
			}
		})
	}
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		s := box.OnTerminal(t, false, append([]string{"env", "INIT=" + init}, shell...)...)
		s.WaitFor("$ ")
		s.Type("$INIT -c sh -c 'echo r$((1))dy; exec sleep 1000'\n")
		s.WaitFor("r1dy") // until its command runs, dumb-init loses signals
		s.AwaitForeground("dumb-init")
		for range 2 {
			s.Type(box.CtrlZ)
			s.WaitFor("Stopped")
			s.Type("fg\n")
			s.AwaitForeground("dumb-init")
		}
		s.Type(box.CtrlC)
		s.WaitFor("$ ")
		s.Type("echo code $?\n")
		s.WaitFor("code 130")
		s.Type("exit 0\n")
		s.WantExit(0)
	})
}

// wantJobControl checks that the shell on the terminal can stop, continue and interrupt a job,
// and then ends the shell.
func wantJobControl(s *box.Screen) {
	s.Type("sleep 1000\n")
	s.WaitFor("sleep 1000\r\n")
	s.AwaitForeground("sleep")
	s.Type(box.CtrlZ)
	s.WaitFor("Stopped")
	s.Type("fg\n")
	s.AwaitForeground("sleep")
	s.Type(box.CtrlC)
	s.WaitFor("$ ")
	s.Type("exit 3\n")
	s.WantExit(3)
}
