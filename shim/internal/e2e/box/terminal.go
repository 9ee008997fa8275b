package box

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Shell is the command line of an interactive bash, with job control.
var Shell = []string{"bash", "--norc", "--noprofile", "--noediting", "-i"}

// openTerminal gives the program a terminal. What the terminal shows, errors and the echo of
// what is typed among it, is the lines of Out, and those of Err.
func (b *Box) openTerminal() (tty *os.File) {
	b.T.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		b.T.Skip("no terminal: ", err)
	}
	b.T.Cleanup(func() { ptmx.Close() })
	b.Cmd.Env = append(b.Cmd.Env, `PS1=$\n`, "HOME=/", "TERM=dumb", "LAMEDUCK="+Binary)
	b.Cmd.Stdin, b.Cmd.Stdout, b.Cmd.Stderr = tty, tty, tty
	b.TTY, b.Stdin, b.Out = ptmx, ptmx, newLines(b.T, ptmx)
	b.Err = b.Out
	return tty
}

// awaitForeground waits until the leader of the terminal's foreground process group is a
// program with one of the names.
func (b *Box) awaitForeground(names []string) {
	b.T.Helper()
	testutil.Eventually(b.T, fmt.Sprintf("one of %q leads the foreground process group", names), func() bool {
		pgrp := testutil.Must(unix.IoctlGetInt(int(b.TTY.Fd()), unix.TIOCGPGRP))
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pgrp))
		return slices.Contains(names, strings.TrimSpace(string(comm)))
	})
}
