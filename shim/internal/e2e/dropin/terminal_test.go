package dropin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// askTTY makes a shell print whether the shell has a controlling terminal.
const askTTY = `if true 2>/dev/null </dev/tty; then echo "$0: yes"; else echo "$0: no"; fi`

// TestDropinTerminal: dumb-init leaves the terminal to its command's session. The HUP and
// CONT with which the kernel notifies dumb-init are not passed on; later HUPs and CONTs are.
func TestDropinTerminal(t *testing.T) {
	for _, name := range []string{"dumb-init", "tini"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			b := box.OnTerminal(t, true, append([]string{init, "--"}, box.Helper("catch")...)...)
			b.WaitFor("ready")
			sent := []sig.Signal{sig.HUP, sig.CONT, sig.HUP, sig.CONT}
			for _, signal := range sent {
				b.Signal(signal)
				b.WaitFor("got " + signal.String())
			}
			b.Type(box.CtrlC)
			b.WaitFor("got INT")
			b.Send("exit 7")
			b.WantExit(7)
			if text := strings.Join(b.Out.Texts(), " "); strings.Count(text, "got ") != len(sent)+1 {
				t.Errorf("the screen shows %s; want %d signals", text, len(sent)+1)
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
				b := box.OnTerminal(t, false, "env", "INIT="+init, "ASK="+askTTY, "sh", "-c", script+`; sh -c "$ASK" shell`)
				b.WaitFor("command: no")
				b.WaitFor("shell: yes")
				b.WantExit(0)
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
			b := box.OnTerminal(t, true, init, script)
			b.WaitFor("script: yes")
			b.WantExit(0)
			b = box.OnTerminal(t, false, init, "--", "sh", "-c", "stty -echo; echo ready; tac")
			b.WaitFor("ready")
			b.Type("1\n2\n3\n" + box.CtrlD)
			b.WaitFor("3")
			b.WaitFor("2")
			b.WaitFor("1")
			b.WantExit(0)
		})
	}
}

// TestDropinTerminalShell: an interactive shell has job control. (catatonit is left out: it
// blocks the terminal stop signals for its command.)
func TestDropinTerminalShell(t *testing.T) {
	for _, call := range []string{"tini --", "dumb-init --", "dumb-init -c"} {
		onEachCall(t, call, func(t *testing.T, s box.Setup, flags string) {
			for _, pid1 := range []bool{true, false} {
				wantJobControl(box.Shell(t, pid1, s.Init, flags), "sleep 1000", "sleep", "sleep")
			}
		})
	}
}

// TestDropinTerminalJob: for an interactive shell, an init and its command are one job.
func TestDropinTerminalJob(t *testing.T) {
	for call, leader := range map[string]string{"lameduck --": "sleep", "dumb-init -c": "dumb-init"} {
		onEachCall(t, call, func(t *testing.T, s box.Setup, flags string) {
			// Until its command runs, dumb-init loses signals.
			job := s.Init + " " + flags + " sh -c 'echo r$((1))dy; exec sleep 1000'"
			b := box.Shell(t, false)
			wantJobControl(b, job, leader, filepath.Base(s.Init))
		})
	}
}

// wantJobControl wants a shell on the terminal to stop, continue and interrupt a job, whose
// process group has a leader of this name, and ends the shell. A job that continued in the
// background may have another leader.
func wantJobControl(b *box.Box, job, leader, background string) {
	b.T.Helper()
	b.Send(job)
	if strings.Contains(job, "r$((1))dy") {
		b.WaitFor("r1dy")
	}
	b.AwaitForeground(leader)
	for i, resume := range []string{"fg", "bg; fg"} {
		b.Type(box.CtrlZ)
		b.WaitFor("Stopped")
		b.Send(resume)
		b.AwaitForeground([]string{leader, background}[:i+1]...)
	}
	b.Type(box.CtrlC)
	b.Send("echo code $?")
	b.WaitFor("code 130")
	b.Send("exit 3")
	b.WantExit(3)
}
