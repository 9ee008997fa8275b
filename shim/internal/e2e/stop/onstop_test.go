package stop_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestOnStopSees: --on-stop inherits what the command inherits, apart from standard input,
// the other descriptors, LAMEDUCK_PID and LAMEDUCK_SIGNAL. A relative path starts at
// lameduck's first working directory. The program can signal the command.
func TestOnStopSees(t *testing.T) {
	for _, program := range []string{"./on-stop", "on-stop"} {
		t.Run(filepath.Dir(program)+program, func(t *testing.T) {
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
			}.Boot(t, "--grace-period=30 --alive-file=alive --health="+box.FreeAddr(),
				"sh", "-c", factsScript+`trap 'echo USR2' USR2; trap 'exit 7' TERM; echo ready $$; while :; do sleep 0.05; done`)
			pid := strings.TrimPrefix(b.Out.Wait("ready").Text, "ready ")
			own := b.Out.Texts()
			b.Stop()
			b.WantExit(7)
			want := append(own, own[0], "stdin /dev/null", "foreign 0", own[3], own[4], own[5], "env "+pid+" TERM", "[a  b]",
				"[c'd]", "[e f]", "USR2")
			b.Out.Want(want...)
			if own[0] != "dir "+dir || own[2] == "foreign 0" || !strings.HasSuffix(own[4], "1") {
				t.Errorf("the command printed %v", own)
			}
			b.WantWarning("")
		})
	}
}

// TestOnStopEnds: the hold lasts until --on-stop has ended, well or badly, and never longer
// than its ceiling. That a program cannot run is told at the start too.
func TestOnStopEnds(t *testing.T) {
	for _, c := range box.Table(`
		case     | program                                            | hold | reason  | warning
		well     | sleep 1                                            | 1s   | elapsed |
		badly    | sh -c "exit 3"                                     |      | elapsed | exited 3
		killed   | sh -c "kill -TERM $$"                              |      | elapsed | was killed by TERM
		missing  | /no/such/program                                   |      | elapsed | cannot run
		too late | sleep 1000                                         | 2s   | ceiling | still runs, and is killed
		a daemon | sh -c "setsid sleep 1000 >/dev/null 2>&1 & exit 0" |      | elapsed |
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			b := box.Catch(t, "--max-delay=2 --grace-period=30 --on-stop='"+c["program"]+"'")
			b.WantHold(b.Stop(), c.Time("hold"), c["reason"])
			if c["case"] == "missing" {
				b.Err.WaitNth(2, c["warning"])
				return
			}
			b.WantWarning(c["warning"])
		})
	}
}

// TestOnStopKilled: an --on-stop that ignores signals is killed together with its children,
// at the ceiling of the hold or when lameduck exits earlier. lameduck is not PID 1, so that
// the kernel kills no process when lameduck exits.
func TestOnStopKilled(t *testing.T) {
	stubborn := `sh -c "trap '' TERM INT HUP; sleep 1000 & echo child $! self $$; while :; do wait; done"`
	for name, early := range map[string]bool{"ceiling": false, "command exits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := box.Setup{Outside: true, Env: []string{"LAMEDUCK_ON_STOP=" + stubborn}}.Catch(t,
				"--grace-period=30 --max-delay=2")
			start := b.Stop()
			var pids [2]int
			fmt.Sscanf(b.Out.Wait("child").Text, "child %d self %d", &pids[0], &pids[1])
			if early {
				b.Exit()
			} else {
				b.WantHold(start, 2*time.Second, "ceiling")
			}
			for _, pid := range pids {
				testutil.Eventually(t, fmt.Sprint(pid, " is dead"), func() bool { return box.HasEnded(pid) })
			}
			b.WantWarning("still runs, and is killed")
		})
	}
}

// TestOnStopElsewhere: if lameduck's user may not enter the working directory, as in some
// containers, --on-stop runs in /.
func TestOnStopElsewhere(t *testing.T) {
	t.Parallel()
	dir := testutil.Must(os.MkdirTemp("", "private")) // of mode 0700
	t.Cleanup(func() { os.Remove(dir) })
	b := box.Setup{Faults: "uid=65534", Change: func(cmd *exec.Cmd) { cmd.Dir = dir }}.Catch(t,
		"--delay=0.2 --grace-period=30 --on-stop='sh -c pwd'")
	b.WantHold(b.Stop(), 0, "elapsed")
	b.Out.Want("ready", "/", "got TERM")
	b.WantWarning("")
}

// TestOnStopSignal: a signal's name alone is sent when the hold begins, to processes that handle
// it and to no others: with --group a shell that waits for its child survives.
func TestOnStopSignal(t *testing.T) {
	const handler = `trap 'echo told' USR2; trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done`
	for _, c := range box.Table(`
		case      | flags   | script                               | told | warning              | code
		handled   |         | exec "$@"                            | yes  |                      | 7
		unhandled |         | echo ready; exec sleep 1000          |      | does not handle USR2 | 143
		a shell   |         | "$@"; exit                           |      | does not handle USR2 | 143
		a group   | --group | trap 'wait; exit 6' TERM; "$@"& wait | yes  |                      | 6
	`) {
		t.Run(c["case"], func(t *testing.T) {
			t.Parallel()
			b := box.Boot(t, "--on-stop=SIGUSR2 --delay=0.5 --grace-period=30 "+c["flags"], "sh", "-c", c["script"], "sh",
				"sh", "-c", handler)
			b.Ready()
			b.Stop()
			if c["told"] != "" {
				b.Out.Wait("told")
			}
			b.WantExit(testutil.Must(strconv.Atoi(c["code"])))
			b.WantWarning(c["warning"])
			if r := b.Report(); r.Ended != "elapsed" || r.HeldMS < 500 {
				t.Errorf("report %+v, want a hold of the whole delay", r)
			}
		})
	}
}
