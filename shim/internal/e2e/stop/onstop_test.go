package stop_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// factsScript prints what a shell has inherited.
const factsScript = `echo "dir $(pwd)"
echo "stdin $(readlink /proc/self/fd/0)"
echo "foreign" $(ls -l /proc/$$/fd | grep -cE '/dev/zero|socket|anon_inode|alive')
grep -E '^Sig(Ign|Blk)' /proc/$$/status | tr -d '\t'
echo "var $VAR"
`

// handlerScript handles USR2 and TERM.
const handlerScript = `trap 'echo told' USR2; trap 'exit 7' TERM; echo ready $$; while :; do sleep 0.05; done`

// TestOnStopSees: --on-stop inherits what the command inherits, apart from standard input,
// the other descriptors, LAMEDUCK_PID and LAMEDUCK_SIGNAL. A relative path starts at
// lameduck's first working directory. The program can signal the command.
func TestOnStopSees(t *testing.T) {
	for _, program := range []string{"./on-stop", "on-stop"} {
		t.Run(strings.Replace(program, "/", " ", 1), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := "#!/bin/sh\n" + factsScript +
				"echo \"env $LAMEDUCK_PID $LAMEDUCK_SIGNAL\"\nfor i; do echo \"[$i]\"; done\nkill -USR2 $LAMEDUCK_PID\n"
			testutil.Must(0, os.WriteFile(dir+"/on-stop", []byte(script), 0o755))
			b := box.Setup{
				Faults: "ignore=HUP",
				Env: []string{"VAR=x y", "PATH=.:" + os.Getenv("PATH"), "LAMEDUCK_PID=1", "LAMEDUCK_ON_STOP=" + program +
					` 'a  b' "c'd" e\ f`},
				Change: func(cmd *exec.Cmd) {
					cmd.Dir, cmd.ExtraFiles = dir, []*os.File{testutil.Must(os.Open("/dev/zero"))}
				},
			}.Boot(t, "--grace-period=30 --alive-file=alive --health="+box.FreeAddr(), "sh", "-c", factsScript+handlerScript)
			pid := strings.TrimPrefix(b.Out.Wait("ready").Text, "ready ")
			own := b.Out.Texts()
			b.Stop()
			b.WantExit(7)
			b.Out.Want(append(own, own[0], "stdin /dev/null", "foreign 0", own[3], own[4], own[5], "env "+pid+" TERM", "[a  b]",
				"[c'd]", "[e f]", "told")...)
			if own[0] != "dir "+dir || own[2] == "foreign 0" || !strings.HasSuffix(own[4], "1") {
				t.Errorf("the command printed %v", own)
			}
			b.WantWarning("")
		})
	}
}

// TestOnStop: the hold lasts until --on-stop has ended, well or badly, and never longer than its
// ceiling. That a program cannot run is told at the start too. Where lameduck's user may not enter
// the working directory, the program runs in /. A signal's name alone is sent to processes that
// handle the signal and to no others: with --group a shell that waits for its child survives. "says"
// is what --on-stop or the command prints.
func TestOnStop(t *testing.T) {
	t.Parallel()
	for _, c := range box.Table(`
		case      | faults    | flags         | on-stop                                            | command                              | says | reason  | code | warning
		well      |           |               | sh -c "sleep 1; echo over"                         | exec "$@"                            | over | elapsed | 7    |
		killed    |           |               | sh -c "kill -TERM $$"                              | exec "$@"                            |      | elapsed | 7    | was killed by TERM
		missing   |           |               | /no/such/program                                   | exec "$@"                            |      | elapsed | 7    | cannot run
		too late  |           | --max-delay=2 | sleep 1000                                         | exec "$@"                            |      | ceiling | 7    | still runs, and is killed
		a daemon  |           |               | sh -c "setsid sleep 1000 >/dev/null 2>&1 & exit 0" | exec "$@"                            |      | elapsed | 7    |
		in /      | uid=65534 |               | sh -c pwd                                          | exec "$@"                            | /    | elapsed | 7    |
		handled   |           | -d 0.5        | SIGUSR2                                            | exec "$@"                            | told | elapsed | 7    |
		unhandled |           | -d 0.5        | SIGUSR2                                            | echo ready; exec sleep 1000          |      | elapsed | 143  | does not handle USR2
		a shell   |           | -d 0.5        | SIGUSR2                                            | "$@"; exit                           |      | elapsed | 143  | does not handle USR2
		a group   |           | -d 0.5 -g     | SIGUSR2                                            | trap 'wait; exit 6' TERM; "$@"& wait | told | elapsed | 6    |
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			dir := testutil.Must(os.MkdirTemp("", "private")) // of mode 0700
			t.Cleanup(func() { os.Remove(dir) })
			s := box.Setup{Faults: c["faults"], Change: func(cmd *exec.Cmd) { cmd.Dir = dir }}
			b := s.Boot(t, "--grace-period=30 "+c["flags"]+" --on-stop='"+c["on-stop"]+"'",
				"sh", "-c", c["command"], "sh", "sh", "-c", handlerScript)
			b.Ready()
			b.Stop()
			b.Out.Wait(c["says"])
			b.WantExit(testutil.Must(strconv.Atoi(c["code"])))
			if r := b.Report(); r.Ended != c["reason"] {
				t.Errorf("report %+v, want %s", r, c["reason"])
			}
			if c["case"] == "missing" {
				b.Err.WaitNth(2, c["warning"])
				return
			}
			b.WantWarning(c["warning"])
		})
	}
}

// TestOnStopKilled: an --on-stop that ignores signals is killed together with its children, at the
// latest when lameduck exits. lameduck is not PID 1, so that the kernel kills no process then.
func TestOnStopKilled(t *testing.T) {
	t.Parallel()
	stubborn := `sh -c "trap '' TERM INT HUP; sleep 1000 & echo child $! self $$; while :; do wait; done"`
	b := box.Setup{Outside: true, Env: []string{"LAMEDUCK_ON_STOP=" + stubborn}}.Catch(t, "--grace-period=30")
	b.Stop()
	var child, self int
	fmt.Sscanf(b.Out.Wait("child").Text, "child %d self %d", &child, &self)
	b.Exit()
	testutil.Eventually(t, "both are dead", func() bool { return box.HasEnded(child) && box.HasEnded(self) })
	b.WantWarning("still runs, and is killed")
}
