package box

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Keys of a terminal.
const (
	CtrlC = "\x03"
	CtrlD = "\x04"
	CtrlZ = "\x1a"
)

// OnTerminal runs a program as the leader of a session on a new terminal; with pid1, as PID 1
// of new namespaces.
func OnTerminal(t *testing.T, pid1 bool, words ...string) *Box {
	t.Helper()
	env := []string{`PS1=$\n`, "HOME=/", "TERM=dumb", "LAMEDUCK=" + Binary}
	return Setup{Outside: !pid1, Env: env, tty: true}.Start(t, words...)
}

// openTerminal gives the program a terminal. What the terminal shows, errors and the echo of
// what is typed among it, is the lines of Out, and those of Err.
func (b *Box) openTerminal() (tty *os.File) {
	b.T.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		b.T.Skip("no terminal: ", err)
	}
	b.T.Cleanup(func() { ptmx.Close() })
	b.Cmd.Stdin, b.Cmd.Stdout, b.Cmd.Stderr = tty, tty, tty
	b.TTY, b.Stdin, b.Out = ptmx, ptmx, newLines(b.T, ptmx)
	b.Err = b.Out
	return tty
}

// Shell runs an interactive bash, with job control, on a terminal.
func Shell(t *testing.T, pid1 bool, init ...string) *Box {
	t.Helper()
	Needs(t, "bash")
	b := OnTerminal(t, pid1, append(init, "bash", "--norc", "--noprofile", "--noediting", "-i")...)
	b.WaitFor("$")
	return b
}

// Type types keys.
func (b *Box) Type(keys string) {
	b.T.Helper()
	if _, err := io.WriteString(b.TTY, keys); err != nil {
		b.T.Fatal(err)
	}
}

// WaitFor waits for a line with text, after the lines of earlier calls.
func (b *Box) WaitFor(text string) {
	b.T.Helper()
	b.Out.Next(text)
}

// AwaitForeground waits until the leader of the terminal's foreground process group is a
// program with one of the names.
func (b *Box) AwaitForeground(names ...string) {
	b.T.Helper()
	testutil.Eventually(b.T, fmt.Sprintf("one of %q leads the foreground process group", names), func() bool {
		pgrp := testutil.Must(unix.IoctlGetInt(int(b.TTY.Fd()), unix.TIOCGPGRP))
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pgrp))
		return slices.Contains(names, strings.TrimSpace(string(comm)))
	})
}
