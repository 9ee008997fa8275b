package hold_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// hostScript is a container's command, beside which preStop hooks run: a shell that obeys
// lines, beside the server of its arguments, if there are any. "hook LINE" starts a hook, a command
// line in which $L is lameduck, and "signal NAME..." sends signals to it. What the hook prints is
// printed after "hook: ", and then its exit code; descriptor 5 is the shell's standard error.
const hostScript = `
mkfifo $D/pipe; sed -u 's/^/hook: /' <$D/pipe & exec 4>$D/pipe 5>&2
hook() {
	{
		(export LAMEDUCK_LOG_FORMAT=json LAMEDUCK_GRACE_PERIOD=60; eval "exec $1") >&4 2>&4 4>&- &
		echo $! >$D/pid; wait $!; echo exited $? >&4
	} &
}
signal() { for name; do kill -$name $(cat $D/pid); done; }
if [ $# -gt 0 ]; then sleep 1000 | "$@" & server=$!; else echo ready; fi
while read -r line; do eval "$line"; done`

// pid1s are other programs as PID 1, by their names in TestHold.
var pid1s = strings.NewReplacer("SHELL", `/bin/sh -c '"$@"; exit $?' sh`,
	"TRAPS", `/bin/sh -c 'trap "echo told" USR2; exec 3<&0; "$@" <&3 & wait $! || wait $!' sh`)

// otherUser runs lameduck as another user than PID 1's.
const otherUser = `sh -c "mount -t tmpfs -o mode=755 tmpfs /mnt && cp $L /mnt/l && ` +
	`exec setpriv --reuid=65534 --clear-groups /mnt/l \"\$@\"" sh`

// TestHold: a hook holds beside any PID 1 that does not hold by itself, whatever is wrong with the
// hook's flags, and fails then. It ignores variables of flags that only lameduck has. On PID 1's standard error the
// reason for the end of a hold is too, but not if PID 1 is another user's.
func TestHold(t *testing.T) {
	t.Parallel()
	box.Each(t, `
		case                       | PID 1                          | environment            | server      | hook                              | reason        | session
		requests                   |                                |                        | 127.0.0.1:0 | $L hold --quiet-for=1             | quiet         | err holding / requests / "accepted": / hook: exited 0 / > exit 0 / exits 0
		idle connections           |                                |                        | 127.0.0.1:0 | $L hold --close-idle --quiet-for=2 | quiet         | "closed_idle":24 / hook: exited 0 / > exit 0 / exits 0
		PID 1's variables          |                                |                        |             | env LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_GROUP=maybe $L hold | no_listener   | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		lameduck without a hold    | DIR/lameduck --                |                        |             | $L hold                           | no_listener   | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		a shell that is told       | TRAPS                          |                        |             | $L hold --on-stop=USR2 -d 0.1 -u elapsed | elapsed       | hook: exited 0 / > exit 0 / exits 0 / once told
		signals to the hook        | TRAPS                          |                        |             | $L hold -d 15 -u elapsed          | second_signal | err holding / > signal USR2 TERM / TERM ends the wait / hook: exited 0 / > exit 0 / exits 0 / never told
		a shell without /proc      | TRAPS                          |                        |             | unshare -m sh -c "umount -l /proc; exec $L hold --on-stop=USR2 -d 0.1 -u elapsed" |               | hook: exited 0 / > exit 0 / exits 0 / once told
		tini forwards it           | /usr/bin/tini -- TRAPS         |                        |             | $L hold --on-stop=USR2 -d 0.1 -u elapsed | elapsed       | hook: exited 0 / > exit 0 / exits 0 / once told
		a shell that is not        | SHELL                          |                        |             | $L hold --on-stop=USR2 -d 0.1 -u elapsed | elapsed       | PID 1 does not handle USR2 / hook: exited 0 / > exit 0 / exits 0
		a program at the stop      |                                |                        |             | $L hold --on-stop=true --until=elapsed | elapsed       | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		holds by flags             | DIR/lameduck --delay=3 --      | LAMEDUCK_DELAY=3       |             | $L hold                           |               | PID 1 is a lameduck that holds by itself, without / hook: exited 0 / > exit 0 / exits 0
		holds by environment       | DIR/lameduck --                | LAMEDUCK_DELAY=3       |             | $L hold -d 1                      |               | holds by itself / hook: exited 0 / > exit 0 / exits 0
		holds as tini              | DIR/tini -g --                 | LAMEDUCK_DELAY=3       |             | $L hold                           |               | holds by itself / hook: exited 0 / > exit 0 / exits 0
		holds by another name      | DIR/other --                   | LAMEDUCK_DELAY=3       |             | $L hold                           |               | holds by itself / hook: exited 0 / > exit 0 / exits 0
		holds behind tini          | /usr/bin/tini -- DIR/lameduck -u quiet -- |                        |             | $L hold                           |               | is a lameduck that holds by itself / hook: exited 0 / > exit 0 / exits 0
		holds behind a shell       | SHELL DIR/lameduck -u quiet -- |                        |             | $L hold                           |               | is a lameduck that holds by itself / hook: exited 0 / > exit 0 / exits 0
		holds, and a wrong flag    | DIR/lameduck --                | LAMEDUCK_DELAY=3       |             | $L hold --dely=15                 |               | holds by itself / hook: exited 125 / > exit 0 / exits 0
		holds, another user asks   | DIR/lameduck -u quiet --       |                        |             | OTHER hold                        |               | holds by itself / hook: exited 0 / > exit 0 / exits 0
		a word of a shell          | /bin/sh -c '"$@"; exit $?' DIR/lameduck | LAMEDUCK_UNTIL=quiet   |             | $L hold                           | no_listener   | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		a word, another user asks  | /bin/sh -c '"$@"; exit $?' DIR/lameduck |                        | 127.0.0.1:0 | OTHER hold --quiet-for=1          |               | "ended":"quiet" / hook: exited 0 / > exit 0 / exits 0
		a hold turned off          | DIR/lameduck --quiet-for=2 --  | LAMEDUCK_UNTIL=elapsed |             | $L hold                           | no_listener   | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		beside another program     | /bin/sh -c 'sleep 1000 & "$@"; exit $?' sh DIR/lameduck -u quiet -- |                        |             | $L hold                           | no_listener   | TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		no time                    |                                |                        | 127.0.0.1:0 | $L hold --grace-period=1 -d 5     |               | the grace period leaves no time to hold / hook: exited 125 / > exit 0 / exits 0
		no time, a wrong flag      |                                |                        | 127.0.0.1:0 | $L hold --grace-period=1 --untl=quiet |               | the grace period leaves no time to hold / hook: exited 125 / > exit 0 / exits 0
		TERM                       |                                |                        | 127.0.0.1:0 | $L hold -d 15                     | second_signal | err holding / > signal HUP USR1 WINCH TSTP PIPE TERM / TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		INT                        |                                |                        | 127.0.0.1:0 | $L hold -d 15                     | interrupt     | err holding / > signal INT / TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		the server is killed       |                                |                        | 127.0.0.1:0 | $L hold -d 20 --log-level=debug   | no_listener   | err sample busy / > kill -KILL $server / TERM ends the wait / hook: exited 0 / > exit 0 / exits 0
		another user               |                                |                        | 127.0.0.1:0 | OTHER hold --quiet-for=1          |               | "ended":"quiet" / hook: exited 0 / > exit 0 / exits 0
		standard error is full     |                                |                        |             | $L hold 2>/dev/full               | no_listener   | hook: exited 0 / > exit 0 / exits 0
		all is closed              |                                |                        |             | $L hold <&- >&- 2>&-              | no_listener   | hook: exited 0 / > exit 0 / exits 0
		PID 1's standard error     |                                |                        |             | $L hold 2>&5                      | no_listener   | hook: exited 0 / > exit 0 / exits 0
		a wrong flag               |                                |                        |             | $L hold --quite-for=2             | no_listener   | did you mean --quiet-for? / hook: exited 125 / > exit 0 / exits 0
		a wrong variable           |                                |                        |             | env LAMEDUCK_UNTIL=x $L hold      | no_listener   | invalid condition / hook: exited 125 / > exit 0 / exits 0
		a flag of PID 1's          | SHELL                          |                        |             | $L hold -d 0.1 -u elapsed --group | elapsed       | unknown flag --group / hook: exited 125 / > exit 0 / exits 0
		a signal that nobody gets  | SHELL                          |                        |             | $L hold -d 0.1 -u elapsed --preset=nginx | elapsed       | no process handles QUIT / hook: exited 0 / > exit 0 / exits 0
		no termination log         |                                |                        |             | $L hold --termination-log=/proc   | no_listener   | is a directory / hook: exited 125 / > exit 0 / exits 0
		no word                    |                                |                        |             | $L --until=quiet                  | no_listener   | no command: holding as lameduck hold / hook: exited 0 / > exit 0 / exits 0
		no word, a wrong flag      |                                |                        |             | $L --untl=quiet                   | no_listener   | did you mean --until? / hook: exited 125 / > exit 0 / exits 0
		no word, a flag of PID 1's |                                |                        |             | $L -r TERM:QUIT -u quiet          | no_listener   | unknown flag -r / hook: exited 125 / > exit 0 / exits 0
	`, func(t *testing.T, c box.Row) {
		hook := strings.ReplaceAll(c["hook"], "OTHER", otherUser)
		if hook != c["hook"] {
			box.NeedsRoot(t)
		}
		dir := t.TempDir()
		for _, name := range []string{"lameduck", "tini", "other"} {
			testutil.Must(0, os.Symlink(box.Binary, dir+"/"+name))
		}
		words := box.Words(strings.ReplaceAll(pid1s.Replace(c["PID 1"]), "DIR", dir))
		if len(words) > 0 {
			box.Needs(t, words[0])
		}
		words = append(words, "/bin/sh", "-c", hostScript, "host")
		if c["server"] != "" {
			words = append(words, box.Helper("catch", c["server"])...)
		}
		s := box.Setup{Network: box.NewNetwork(t), Env: append(strings.Fields(c["environment"]), "L="+box.Binary, "D="+dir)}
		h := s.Start(t, words...)
		h.Ready()
		if c["server"] != "" {
			h.Dial("127.0.0.1").Ask("hello")
		}
		if strings.Contains(c["hook"], "--close-idle") {
			h.Talkers(24)
		}
		h.Acts = map[string]func(){"requests": func() { shorts(h, "127.0.0.1") }}
		h.Play("> hook '" + hook + "' / " + c["session"])
		begins := strings.Count(strings.Join(h.Messages(), "\n"), "TERM ends the wait")
		if (c["reason"] != "") != (begins == 1) || begins == 1 && h.Report().Ended != c["reason"] {
			t.Errorf("PID 1's standard error has %q, want a hold until %q, once", h.Messages(), c["reason"])
		}
	})
}

// TestHoldStops: with --preset, --stop-schedule or --kill-after a hook stops what runs below PID 1, or PID 1 if
// it handles the signal, and says whom. W is a server that cleans up for a moment at its first TERM. The
// container ends with its last line; else the hook returns, and the kubelet's signal follows.
func TestHoldStops(t *testing.T) {
	const worker = `n=0; trap 'n=$((n+1)); echo TERM $n' TERM; echo up; until [ $n -gt 0 ]; do sleep 0.05; done; sleep 0.3; echo clean $n`
	const start = `sh -c 'exec 3<&0; (read -r _ <&3; LAMEDUCK hold --delay=0.1 --until=elapsed --grace-period=30 FLAGS; echo returned $?) & exec "$@" 3<&-' sh `
	for _, c := range box.Table(`
		case              | needs     | PID 1                                       | flags                          | session
		a script          |           | sh -c 'true; "$@"; true' sh W               | --preset=auto                  | err sent TERM to / clean 1 / exits 0 / never TERM 2
		background        |           | sh -c '"$@" & wait' sh W                    | --preset=auto                  | err sent TERM to / clean 1 / exits 0 / never TERM 2
		an init           | tini      | tini -- sh -c 'true; "$@"; true' sh W       | --kill-after=20                | err sent TERM to / clean 1 / exits 0 / never TERM 2
		waits by signalfd | catatonit | catatonit -- sh -c 'true; "$@"; true' sh W  | --stop-schedule=TERM           | err sent TERM to / clean 1 / exits 0 / never TERM 2
		PID 1 itself      |           | W                                           | --preset=auto                  | err sent TERM at / clean 1 / exits 0 / never TERM 2
		a runner          | python3   | python3 -c 'import subprocess, sys; subprocess.call(sys.argv[1:])' W | --preset=auto | err sent TERM to / clean 1 / exits 0 / never TERM 2
		restarts it       |           | sh -c 'while :; do "$@"; done' sh W         | --preset=auto                  | err PID 1 still runs / returned 0
		KILL              |           | sh -c 'sh -c "trap : TERM; echo up; while :; do sleep 1000; done"; echo gone' | --kill-after=0.5 | err sent TERM to / gone / exits 0
		nobody            |           | sh -c 'echo up; sleep 1000; true'           | --preset=auto                  | err no process handles TERM / returned 0
		another signal    |           | sh -c 'true; "$@"; true' sh W               | --stop-schedule=USR1/0.5s/TERM | err no process handles USR1 / clean 1 / exits 0 / never TERM 2
		without flags     |           | sh -c 'true; "$@"; true' sh W               |                                | err ignores TERM: the stop ends by KILL / returned 0
	`) {
		c["line"], c["session"] = strings.ReplaceAll(start, "FLAGS", c["flags"])+c["PID 1"], "up / > / "+c["session"]
		c.Play(t, map[string][]string{"W": {"sh", "-c", worker}})
	}
}

// TestHoldNotHook: on a terminal, and where lameduck hold is PID 1, a wrong flag is an error at
// once. Without the word hold, a child of PID 1 is no hook, but lacks its command.
func TestHoldNotHook(t *testing.T) {
	box.Sessions(t, nil, `
	on | line | session
	terminal, outside | LAMEDUCK hold --dely=15 --delay=60 --grace-period=90 | did you mean --delay? / exits 125
	| LAMEDUCK hold --dely=15 | err did you mean --delay? / exits 125
	| sh -c '"$@"; exit $?' sh LAMEDUCK -d 30 | err no command to run / exits 125
	`)
}

// TestHookMisspelled: a hook that enters the container from outside, and whose first word is a slip,
// holds with its flags, says so in the container's log, and fails.
func TestHookMisspelled(t *testing.T) {
	t.Parallel()
	box.Needs(t, "nsenter")
	for _, words := range []string{"hodl --quiet-for=0.3", "Hold --quiet-for=0.3", "-- hold --quiet-for=0.3", "'hold --quiet-for=0.3'",
		"--quiet-for=0.3 drain", ""} {
		h := box.Setup{}.Start(t, "sh", "-c", `echo ready; read x`)
		h.Ready()
		enter := fmt.Sprintf("nsenter --target %d --pid --mount -- %s %s", h.Pid(), box.Binary, words)
		box.Setup{Outside: true, Env: []string{"LAMEDUCK_GRACE_PERIOD=60"}}.Start(t, box.Words(enter)...).WantExit(125)
		h.Play(`err holding as lameduck hold / err "ended":"no_listener" / > / exits 0`)
		if r := h.Report(); r.Trigger != "hold" {
			t.Errorf("%q: %+v", words, r)
		}
	}
}
