package hold_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// inShell makes a shell PID 1.
var inShell = []string{"/bin/sh", "-c", `"$@"; exit $?`, "sh"}

// TestHold: a hook in an ordinary container holds while connections arrive, beside any PID 1
// that does not hold by itself, and ignores variables of flags that only lameduck has.
func TestHold(t *testing.T) {
	for name, before := range map[string][]string{"itself": nil, "shell": inShell,
		"lameduck without a hold": {box.Binary, "--"}} {
		t.Run(name, func(t *testing.T) {
			h := startHost(t, box.Setup{}, before, "127.0.0.1:0")
			h.hook("env LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_GROUP=maybe $L hold --quiet-for=1 --grace-period=30")
			h.Out.Wait("holding")
			last := shorts(h.Box, "127.0.0.1")
			h.wantHook(0, last.Sub(h.start)+quiet-early, "quiet")
			if r := h.Report(); r.Trigger != "hold" || r.Accepted < 10 || r.CeilingMS != 19000 {
				t.Errorf("report %+v", r)
			}
			for _, line := range h.Err.Texts() {
				h.Out.Wait("hook: " + line)
			}
		})
	}
}

// TestHoldTells: a hook sends the signal of --on-stop to a PID 1 that handles the signal.
func TestHoldTells(t *testing.T) {
	told := []string{"/bin/sh", "-c", `trap 'echo told' USR2; exec 3<&0; "$@" <&3 & wait $! || wait $!`, "sh"}
	for _, c := range []struct {
		name, warning string
		pid1          []string
	}{
		{"a shell with a trap", "", told},
		{"a shell without", "does not handle USR2", inShell},
		{"tini, which forwards it", "", append([]string{"tini", "--"}, told...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.pid1[0] == "tini" {
				box.Needs(t, "tini")
				c.pid1[0] = testutil.Must(exec.LookPath("tini"))
			}
			h := startHost(t, box.Setup{}, c.pid1)
			h.hook("$L hold --on-stop=USR2 --delay=1 --until=elapsed")
			if c.warning == "" {
				h.Out.Wait("told")
			}
			h.wantHook(0, time.Second, "elapsed")
			h.WantWarning(c.warning)
		})
	}
}

// TestHoldElsewhere: where PID 1 is a lameduck with a hold, the hook returns at once.
func TestHoldElsewhere(t *testing.T) {
	for _, c := range box.Table(`
		case           | environment      | PID 1                     | flags     | code | says
		by flags       |                  | lameduck --delay=3 --     |           | 0    | holds by itself; nothing to do
		by both        | LAMEDUCK_DELAY=3 | lameduck --delay=3 --     |           | 0    | holds by itself; nothing to do
		by environment | LAMEDUCK_DELAY=3 | lameduck --               | --delay=1 | 0    | because of LAMEDUCK_DELAY, and
		by --until     |                  | lameduck --until=quiet -- |           | 0    | holds by itself; nothing to do
		as tini        | LAMEDUCK_DELAY=3 | tini -g --                |           | 0    | because of LAMEDUCK_DELAY, and
		wrong flag     | LAMEDUCK_DELAY=3 | lameduck --               | --dely=15 | 125  | holds by itself
	`) {
		t.Run(c["case"], func(t *testing.T) {
			before := strings.Fields(c["PID 1"])
			link := t.TempDir() + "/" + before[0]
			testutil.Must(0, os.Symlink(box.Binary, link))
			before[0] = link
			h := startHost(t, box.Setup{Env: strings.Fields(c["environment"])}, before)
			h.hook("$L hold --grace-period=30 " + c["flags"])
			h.Out.Wait(c["says"])
			h.wantHook(testutil.Must(strconv.Atoi(c["code"])), 0, "")
		})
	}
}

// TestHoldEnds: the reasons for the end of a hook. No signals but TERM and INT end a hook.
func TestHoldEnds(t *testing.T) {
	for _, c := range box.Table(`
		case          | server      | hook                                                   | then                          | at | reason
		TERM          | 127.0.0.1:0 | $L hold --delay=15 --grace-period=60                   | HUP USR1 WINCH TSTP PIPE TERM |    | second_signal
		INT           | 127.0.0.1:0 | $L hold --delay=15 --grace-period=60                   | INT                           |    | interrupt
		ceiling       | 127.0.0.1:0 | $L hold --max-delay=3 --until=drained --quiet-for=1    |                               | 3s | ceiling
		no listener   |             | $L hold                                                |                               |    | no_listener
		server killed | 127.0.0.1:0 | $L hold --delay=20 --grace-period=60 --log-level=debug | crash                         | 2s | no_listener
		elapsed       | 127.0.0.1:0 | $L hold --until=elapsed --delay=1                      |                               | 1s | elapsed
		on-stop       |             | $L hold --on-stop=true --until=elapsed                 |                               |    | elapsed
		stderr full   | 127.0.0.1:0 | $L hold --delay=1 --until=elapsed 2>/dev/full          |                               | 1s | elapsed
		all closed    | 127.0.0.1:0 | $L hold --delay=1 --until=elapsed <&- >&- 2>&-         |                               | 1s | elapsed
		same stderr   |             | $L hold 2>&5                                           |                               |    | no_listener
		another user  | 127.0.0.1:0 | $AS /mnt/l hold --quiet-for=1                          |                               | 1s |
	`) {
		t.Run(c["case"], func(t *testing.T) {
			h := startHost(t, box.Setup{}, nil, strings.Fields(c["server"])...)
			if c["server"] != "" {
				h.Dial("127.0.0.1").Ask("hello")
			}
			if c["case"] == "another user" {
				box.Needs(t, "setpriv")
				box.NeedsRoot(t)
				h.Send("AS='setpriv --reuid=65534 --clear-groups'; mount -t tmpfs -o mode=755 tmpfs /mnt; cp $L /mnt/l")
			}
			h.hook(c["hook"])
			if c["reason"] != "" {
				h.Err.Wait("holding")
			}
			if c["then"] == "crash" {
				h.Err.Wait("sample busy")
				h.Send("kill -KILL $server")
			} else {
				for _, name := range strings.Fields(c["then"]) {
					h.signal(name)
				}
			}
			h.wantHook(0, c.Time("at"), c["reason"])
		})
	}
}

// TestHoldAnyway: a hook with an error says so, also on PID 1's standard error, holds by what is
// right, and exits 125. A hook without the word hold holds too.
func TestHoldAnyway(t *testing.T) {
	for _, c := range box.Table(`
		hook                                  | code | lines | reason      | says
		$L hold --quite-for=2 --quiet-for=0.2 | 125  | 3     | no_listener | did you mean --quiet-for?
		$L hold --delay=x                     | 125  | 3     | no_listener | invalid duration
		$L hold --rewrite TERM:USR1           | 125  | 3     | no_listener | unknown flag --rewrite
		$L hold server                        | 125  | 3     | no_listener | unexpected argument
		$L hold --delay=50 --grace-period=30  | 125  | 3     | no_listener | does not fit
		env LAMEDUCK_UNTIL=x $L hold          | 125  | 3     | no_listener | invalid condition
		$L hold --until=elapsed --quiet-for=1 | 125  | 3     | no_listener | has no effect
		$L hold --termination-log=/proc       | 125  | 3     | no_listener | is a directory
		$L --quiet-for=x                      | 125  | 4     | no_listener | invalid duration
		$L --until=quiet --grace-period=60    | 0    | 3     | no_listener | no command: holding as lameduck hold
		$L --until=quiet --preset=nginx       | 125  | 4     | no_listener | lameduck itself has the flag
		$L --untl=quiet                       | 125  | 4     | no_listener | did you mean --until?
		$L --until=quiet --dlay=5             | 125  | 4     | no_listener | did you mean --delay?
		$L -r TERM:QUIT -u quiet              | 125  | 4     | no_listener | unknown flag -r
		$L -p nginx -u quiet --grace-period=9 | 125  | 4     | no_listener | unknown flag -p
		$L hold -d 1 -u elapsed --preset=nginx | 125 | 3     | elapsed     | unknown flag --preset
		$L hold --no --grace-period=1         | 125  | 4     | no_listener | unknown flag --no
	`) {
		t.Run(strings.ReplaceAll(c["hook"], "/", ""), func(t *testing.T) {
			h := startHost(t, box.Setup{}, inShell)
			h.hook(c["hook"])
			h.wantHook(testutil.Must(strconv.Atoi(c["code"])), 0, c["reason"])
			if lines := h.Messages(); strconv.Itoa(len(lines)) != c["lines"] || !strings.Contains(lines[0], c["says"]) {
				t.Errorf("PID 1's stderr %q, want %s lines, the first with %q", lines, c["lines"], c["says"])
			}
		})
	}
}

// TestHoldNotHook: on a terminal, and where lameduck hold is PID 1, a wrong flag is an error at
// once. Without the word hold, a child of PID 1 is no hook, but lacks its command.
func TestHoldNotHook(t *testing.T) {
	s := box.OnTerminal(t, false, box.Binary, "hold", "--dely=15", "--delay=60", "--grace-period=90")
	s.WaitFor("did you mean --delay?")
	s.WantExit(125)
	b := box.Boot(t, "hold --dely=15")
	b.WantExit(125)
	b.WantOneLine("did you mean --delay?")
	b = box.Setup{}.Start(t, append(inShell, box.Binary, "-d", "30")...)
	b.WantExit(125)
	b.WantOneLine("no command to run")
}
