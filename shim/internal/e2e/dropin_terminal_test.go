package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// askTTY makes a shell print whether the shell has a controlling terminal.
const askTTY = `if true 2>/dev/null </dev/tty; then echo "$0: yes"; else echo "$0: no"; fi`

// TestDropinTerminalOfAnother: dumb-init makes a terminal the controlling terminal of its
// command only where no other session has the terminal. TIOCSCTTY with the argument 1 and
// CAP_SYS_ADMIN would take the terminal from the other session for good.
func TestDropinTerminalOfAnother(t *testing.T) {
	needs(t, "setsid")
	for how, script := range map[string]string{
		"in the shell's session":  `"$INIT" sh -c "$ASK" command`,
		"in a session of its own": `setsid -w "$INIT" sh -c "$ASK" command`,
	} {
		t.Run(how, func(t *testing.T) {
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				s := startOnTerminal(t, false, "env", "INIT="+init, "ASK="+askTTY, "sh", "-c", script+`; sh -c "$ASK" shell`)
				s.waitFor("command: no")
				s.waitFor("shell: yes")
				s.wantExit(0)
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
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if out, err := cmd.Output(); err != nil || string(out) != "command: yes\n" {
			t.Errorf("output %q, %v", out, err)
		}
	})
}

// TestDropinTerminalScript: a script without an interpreter line has the terminal too. The
// kernel refuses to execute such a file, and the init executes the shell instead.
func TestDropinTerminalScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte(askTTY), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			s := startOnTerminal(t, true, init, script)
			s.waitFor("script: yes")
			s.wantExit(0)
		})
	}
}

// TestDropinTerminalText: text and end of file (Ctrl-D) pass the terminal unchanged.
func TestDropinTerminalText(t *testing.T) {
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			s := startOnTerminal(t, false, init, "--", "sh", "-c", "stty -echo; echo ready; tac")
			s.waitFor("ready")
			s.typeText("1\n2\n3\n" + ctrlD)
			s.waitFor("3\r\n2\r\n1\r\n")
			s.wantExit(0)
		})
	}
}

// TestDropinTerminalShell: an interactive shell has job control. (catatonit is left out: it
// blocks the terminal stop signals for its command.)
func TestDropinTerminalShell(t *testing.T) {
	needs(t, "bash")
	for _, call := range [][]string{{"tini", "--"}, {"dumb-init", "--"}, {"dumb-init", "-c"}} {
		for how, pid1 := range map[string]bool{"pid1": true, "not pid1": false} {
			t.Run(strings.Join(call, " ")+" "+how, func(t *testing.T) {
				onEachInit(t, call[0], func(t *testing.T, init string) {
					s := startOnTerminal(t, pid1, init, call[1], "bash", "--norc", "--noprofile", "-i")
					s.waitFor("$ ")
					wantJobControl(t, s)
				})
			})
		}
	}
}
