package box

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// keys are the keys of a terminal that a session types.
var keys = map[string]string{"^C": "\x03", "^D": "\x04", "^Z": "\x1a"}

// Play plays a session: steps with " / " between them. What a step waits for comes after what the steps
// before it have waited for. A step is
//
//	TERM              a signal to the program, by its name or number
//	> LINE            a line for the command's standard input
//	^C                a key of the terminal; also ^D, ^Z, and "resize" of its window
//	foreground NAME   waits until a program of this name, or of another one in the step, has the terminal
//	err TEXT          waits for a line of lameduck's
//	exits N           waits for the exit, and wants the code N, if there is one
//	state S T         waits until the program, and its only child, is in a state of proc_pid_status(5)
//	sleeps            waits until the program sleeps
//	only              wants no line of the output but those of the steps before
//	lasts TIME        wants the program to have run this long
//	once TEXT         wants one line with TEXT so far, of the output or of lameduck's; "never TEXT" none
//	ended TEXT        wants the report to say why the hold has ended, and which signals were sent
//	file PATH         wants the file to exist; "gone PATH" not to exist
//	warns TEXT        wants one warning; without a text, none
//	TEXT              waits for a line of the output
//
// or the name of an act of the box.
func (b *Box) Play(session string) {
	b.T.Helper()
	waited := 0
	for step := range strings.SplitSeq(session, " / ") {
		step = strings.TrimSpace(step)
		word, rest, _ := strings.Cut(step, " ")
		switch s, _ := sig.Parse(step); {
		case b.Acts[step] != nil:
			b.Acts[step]()
		case s != 0:
			b.Signal(s)
		case keys[step] != "":
			fmt.Fprint(b.TTY, keys[step])
		case step == "resize":
			testutil.Must(0, pty.Setsize(b.TTY, &pty.Winsize{Rows: 30, Cols: 100}))
		case word == ">":
			b.Send(rest)
		case word == "foreground":
			b.awaitForeground(strings.Fields(rest))
		case word == "err":
			b.Err.Next(rest)
		case step == "exits":
			b.WaitExit()
		case word == "exits":
			b.WantExit(testutil.Must(strconv.Atoi(rest)))
		case word == "once", word == "never":
			n := b.Out.Count(rest)
			if b.Err != b.Out {
				n += b.Err.Count(rest)
			}
			if n > 1 || (n == 1) != (word == "once") {
				b.T.Errorf("%d lines with %q, want it %s: %v %v", n, rest, word, b.Out.All(), b.Err.All())
			}
		case word == "ended":
			if r := b.Report(); !strings.HasPrefix(r.Ended+" "+r.Signals(), rest) {
				b.T.Errorf("report %+v, want %s", r, rest)
			}
		case word == "lasts":
			if took := time.Since(b.began); took < testutil.Must(time.ParseDuration(rest)) {
				b.T.Errorf("the program has run for %v, want %s", took, rest)
			}
		case word == "file", word == "gone":
			if _, err := os.Lstat(rest); (err == nil) != (word == "file") {
				b.T.Errorf("want %s: %v", step, err)
			}
		case word == "warns":
			b.WantWarning(rest)
		case word == "state":
			own, child, _ := strings.Cut(rest, " ")
			if child != "" {
				AwaitState(b.T, b.Child(), child)
			}
			AwaitState(b.T, b.Pid(), own)
		case step == "sleeps":
			testutil.Eventually(b.T, "two seconds without a context switch", func() bool { return Sleeps(b.Pid()) })
		case step == "only":
			if lines := b.Out.Texts(); len(lines) != waited {
				b.T.Errorf("lines %q, want %d", lines, waited)
			}
		default:
			b.Out.Next(step)
			waited++
		}
	}
}

// Sessions plays the rows of a table; see Row.Play.
func Sessions(t *testing.T, programs map[string][]string, table string) {
	t.Helper()
	for _, c := range Table(table) {
		c.Play(t, programs)
	}
}

// Play plays the "session" of a row on the program of its command "line", as a test of its own, if the row's programs
// are installed, which it "needs". In the line, names of programs stand for their words, and CATCH for the helper;
// LAMEDUCK is the built program, and DIR the working directory, which others may not enter. Where the row says
// so, the program has "faults" and an "env", and runs "on" a terminal, in a network of its own, outside of new
// namespaces, or in a directory that is shared with all users.
func (r Row) Play(t *testing.T, programs map[string][]string) {
	t.Helper()
	r = maps.Clone(r) // the caller may change its own
	t.Run(r["case"], func(t *testing.T) {
		t.Parallel()
		Needs(t, strings.Fields(r["needs"])...)
		dir := testutil.Must(os.MkdirTemp("", "session"))
		t.Cleanup(func() { os.RemoveAll(dir) })
		if strings.Contains(r["on"], "shared") {
			os.Chmod(dir, 0o777)
		}
		fill := strings.NewReplacer("DIR", dir, "LAMEDUCK_", "LAMEDUCK_", "LAMEDUCK", Binary, "BAR", "|").Replace
		var line []string
		for _, word := range Words(fill(r["line"])) {
			switch {
			case word == "CATCH":
				line = append(line, Helper("catch")...)
			case programs[word] != nil:
				line = append(line, programs[word]...)
			default:
				line = append(line, word)
			}
		}
		s := Setup{Faults: r["faults"], Env: Words(fill(r["env"])), Change: func(cmd *exec.Cmd) { cmd.Dir = dir },
			Outside: strings.Contains(r["on"], "outside"), Terminal: strings.Contains(r["on"], "terminal")}
		if strings.Contains(r["on"], "network") {
			s.Network = NewNetwork(t)
		}
		s.Start(t, line...).Play(fill(r["session"]))
	})
}
