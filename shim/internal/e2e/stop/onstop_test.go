package stop_test

import (
	"os"
	"os/exec"
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
// handle the signal and to no others: with --group a shell that waits for its child survives.
func TestOnStop(t *testing.T) {
	box.Sessions(t, map[string][]string{"HANDLES": {"sh", "-c", handlerScript}}, `
	case      | faults    | line | session
	well      |           | LAMEDUCK --grace-period=30 --on-stop='sh -c "sleep 1; echo over"' HANDLES | ready / TERM / over / exits 7 / ended elapsed / warns
	killed    |           | LAMEDUCK --grace-period=30 --on-stop='sh -c "kill -TERM $$"' HANDLES | ready / TERM / exits 7 / ended elapsed / warns was killed by TERM
	missing   |           | LAMEDUCK --grace-period=30 --on-stop=/no/such/program HANDLES | ready / err cannot run / TERM / err cannot run / exits 7 / ended elapsed
	too late  |           | LAMEDUCK --max-delay=2 --on-stop='sleep 1000' HANDLES | ready / TERM / exits 7 / ended ceiling / warns still runs, and is killed
	a daemon  |           | LAMEDUCK --grace-period=30 --on-stop='sh -c "setsid sleep 1000 >/dev/null 2>&1 & exit 0"' HANDLES | ready / TERM / exits 7 / ended elapsed / warns
	in /      | uid=65534 | LAMEDUCK --grace-period=30 --on-stop='sh -c "echo in $PWD,"' HANDLES | ready / TERM / exits 7 / once in /, / ended elapsed / warns
	handled   |           | LAMEDUCK -d 0.5 --on-stop=SIGUSR2 HANDLES | ready / TERM / told / exits 7 / ended elapsed / warns
	unhandled |           | LAMEDUCK -d 0.5 --on-stop=SIGUSR2 sh -c 'echo ready; exec sleep 1000' | ready / TERM / exits 143 / ended elapsed / warns does not handle USR2
	a shell   |           | LAMEDUCK -d 0.5 --on-stop=SIGUSR2 sh -c '"$@"; exit' sh HANDLES | ready / TERM / exits 143 / ended elapsed / warns does not handle USR2
	a group   |           | LAMEDUCK -d 0.5 -g --on-stop=SIGUSR2 sh -c 'trap "wait; exit 6" TERM; "$@"& wait' sh HANDLES | ready / TERM / told / exits 6 / ended elapsed / warns
	`)
}

// TestOnStopKilled: an --on-stop that ignores signals is killed together with its children, which have the output
// open, at the latest when lameduck exits. lameduck is not PID 1, so that the kernel kills no process then.
func TestOnStopKilled(t *testing.T) {
	box.Sessions(t, nil, `
	on | line | session
	outside | LAMEDUCK --grace-period=30 --on-stop='sh -c "trap \"\" TERM INT HUP; echo stubborn; sleep 1000 & while :; do wait; done"' CATCH | ready / TERM / stubborn / > exit 7 / exits 7 / warns still runs, and is killed
	`)
}
