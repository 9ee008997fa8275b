package stop_test

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
)

// facts prints what a shell has inherited.
const facts = `
echo "dir $(pwd)"
echo "stdin $(readlink /proc/self/fd/0)"
echo "foreign" $(ls -l /proc/$$/fd | grep -cE "/dev/zero|socket|anon_inode|alive")
grep -E "^Sig(Ign|Blk)" /proc/$$/status | tr -d "\t"
echo "var $VAR"
`

// handlerScript handles USR2 and TERM.
const handlerScript = `trap 'echo told' USR2; trap 'exit 7' TERM; echo ready $$; while :; do sleep 0.05; done`

// TestOnStopSees: --on-stop inherits what the command inherits, apart from standard input,
// the other descriptors, LAMEDUCK_PID and LAMEDUCK_SIGNAL. A relative path starts at
// lameduck's first working directory. The program can signal the command.
func TestOnStopSees(t *testing.T) {
	const onStop = facts + `echo "env $((LAMEDUCK_PID - $(cat pid))) $LAMEDUCK_SIGNAL"; for i; do echo "[$i]"; done; kill -USR2 $LAMEDUCK_PID`
	for _, c := range box.Table(`
		case      | session
		./on-stop | dir DIR / stdin pipe: / foreign 1 / SigBlk:0000000000000000 / SigIgn:0000000000000001 / var x y / ready / TERM / dir DIR
			/ stdin /dev/null / foreign 0 / SigBlk:0000000000000000 / SigIgn:0000000000000001 / var x y / env 0 TERM / [a  b] / [e f] / told / exits 7 / warns
		on-stop   | ready / TERM / dir DIR / env 0 TERM / told / exits 7 / warns
	`) {
		c["faults"] = "ignore=HUP"
		c["env"] = "PATH=.:/usr/bin:/bin LAMEDUCK_PID=1 'VAR=x y' 'ON_STOP=#!/bin/sh" + onStop + "'"
		c["line"] = `sh -c 'printf %s "$ON_STOP" >on-stop; chmod +x on-stop; exec 3</dev/zero; exec "$@"' sh LAMEDUCK --grace-period=30 --alive-file=alive ` +
			`--health=127.0.0.1:9000 --on-stop='` + c["case"] + ` "a  b" e\ f' FACTS`
		c["on"] = "network"
		c.Play(t, map[string][]string{"FACTS": {"sh", "-c", facts + "echo $$ >pid;" + handlerScript}})
	}
}

// TestOnStop: the hold lasts until --on-stop has ended, well or badly, and never longer than its
// ceiling. That a program cannot run is told at the start too. Where lameduck's user may not enter
// the working directory, the program runs in /. A signal's name alone is sent to processes that
// handle the signal and to no others: with --group a shell that waits for its child survives.
func TestOnStop(t *testing.T) {
	box.Sessions(t, map[string][]string{"HANDLES": {"sh", "-c", handlerScript}}, `
	case      | faults    | line | session | on
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
	# One that ignores signals is killed together with its children, which have the output open, at the latest when
	# lameduck exits. lameduck is not PID 1, so that the kernel kills no process then.
	stubborn  |           | LAMEDUCK --grace-period=30 --on-stop='sh -c "trap \"\" TERM INT HUP; echo stubborn; sleep 1000 & while :; do wait; done"' CATCH | ready / TERM / stubborn / > exit 7 / exits 7 / warns still runs, and is killed | outside
	`)
}
