package hold_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestHold: a hook in an ordinary container holds while connections arrive, beside any PID 1
// that does not hold by itself, and ignores variables of flags that only lameduck has.
func TestHold(t *testing.T) {
	for name, before := range map[string][]string{
		"helper": nil, "shell": {"/bin/sh", "-c", `"$@"; exit $?`, "sh"}, "lameduck without a hold": {box.Binary, "--"},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHost(t, box.Setup{}, before, "127.0.0.1:0")
			h.Send("LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_GROUP=maybe hold --quiet-for=1 --grace-period=30")
			h.Out.Wait("holding")
			start := time.Now()
			shorts(h.Box, "127.0.0.1")
			h.wantHook(0, time.Since(start)+quiet-early, "quiet")
			if r := h.Report(); r.Trigger != "hold" || r.Accepted < 10 || r.CeilingMS != 19000 {
				t.Errorf("report %+v", r)
			}
			var lines []string
			for _, line := range h.Out.Texts() {
				if text, ok := strings.CutPrefix(line, "hook: "); ok {
					lines = append(lines, text)
				}
			}
			h.Err.Want(lines...)
		})
	}
}

// TestHoldElsewhere: where PID 1 is a lameduck with a hold, the hook returns at once.
func TestHoldElsewhere(t *testing.T) {
	env := []string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60"}
	for name, c := range map[string]struct {
		env    []string
		before string
		hook   string
		code   int
	}{
		"by flags":       {nil, "lameduck --delay=15 --grace-period=60 --", "hold", 0},
		"by environment": {env, "lameduck --", "hold", 0},
		"by --until":     {nil, "lameduck --until=quiet --grace-period=60 --", "hold", 0},
		"as tini":        {env, "tini -g --", "hold", 0},
		"another's":      {nil, "lameduck --", "as=65534 LAMEDUCK_DELAY=15 hold", 0},
		"wrong flag":     {env, "lameduck --", "hold --dely=15", 125},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another's" {
				box.NeedsRoot(t)
			}
			before := strings.Fields(c.before)
			link := t.TempDir() + "/" + before[0]
			testutil.Must(0, os.Symlink(box.Binary, link))
			h := startHost(t, box.Setup{Env: c.env}, append([]string{link}, before[1:]...))
			h.Send(c.hook + " --grace-period=30")
			h.Out.Wait("holds by itself")
			h.wantHook(c.code, 0, "")
		})
	}
}

// TestHoldEnds: the reasons for the end of a hook. No signals but TERM and INT end a hook.
func TestHoldEnds(t *testing.T) {
	for name, c := range map[string]struct {
		server string
		hook   string
		lines  []string // to the host
		at     time.Duration
		reason string // "": not seen by PID 1
	}{
		"TERM":          {"127.0.0.1:0", "hold --delay=15 --grace-period=60", []string{"send HUP", "send USR1", "send WINCH", "send TSTP", "send PIPE", "send TERM"}, 0, "second_signal"},
		"INT":           {"127.0.0.1:0", "hold --delay=15 --grace-period=60", []string{"send INT"}, 0, "interrupt"},
		"ceiling":       {"127.0.0.1:0", "hold --max-delay=3 --until=drained --quiet-for=1 --grace-period=30", nil, 3 * time.Second, "ceiling"},
		"no listener":   {"", "hold", nil, 0, "no_listener"},
		"server killed": {"127.0.0.1:0", "hold --delay=20 --grace-period=60 --log-level=debug", []string{"crash"}, 2 * time.Second, "no_listener"},
		"elapsed":       {"127.0.0.1:0", "hold --until=elapsed --delay=1 --grace-period=30", nil, time.Second, "elapsed"},
		"--on-stop":     {"", "hold --on-stop=true --until=elapsed --grace-period=30", nil, 0, "elapsed"},
		"another user":  {"127.0.0.1:0", "as=65534 hold --quiet-for=1 --grace-period=30", nil, time.Second, ""},
		"stderr full":   {"127.0.0.1:0", "stuck hold --delay=1 --until=elapsed --grace-period=30", nil, time.Second, "elapsed"},
		"stderr closed": {"127.0.0.1:0", "2>&- hold --delay=1 --until=elapsed --grace-period=30", nil, time.Second, "elapsed"},
		"all closed":    {"127.0.0.1:0", "<&- >&- 2>&- hold --delay=1 --until=elapsed --grace-period=30", nil, time.Second, "elapsed"},
		"same stderr":   {"", "same hold", nil, 0, "no_listener"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another user" {
				box.NeedsRoot(t)
			}
			h := startHost(t, box.Setup{}, nil, strings.Fields(c.server)...)
			if c.server != "" {
				h.Dial("127.0.0.1").Ask("hello")
			}
			h.Send(c.hook)
			if c.reason != "" {
				h.Err.Wait("holding")
			}
			if name == "server killed" {
				h.Err.Wait("sample busy")
			}
			for _, line := range c.lines {
				h.Send(line)
			}
			h.wantHook(0, c.at, c.reason)
		})
	}
}

// TestHoldAnyway: a hook with an error says so, also on PID 1's standard error, holds with the
// defaults, and exits 125. A hook without the word hold, and with flags of the hold alone,
// holds too; with another flag it is an error.
func TestHoldAnyway(t *testing.T) {
	for hook, want := range map[string]struct {
		code, lines int
		reason      string
		says        string
	}{
		"hold --quite-for=2 --quiet-for=0.2": {125, 3, "no_listener", "did you mean --quiet-for?"},
		"hold --delay=x":                     {125, 3, "no_listener", "invalid duration"},
		"hold --rewrite TERM:USR1":           {125, 3, "no_listener", "unknown flag --rewrite"},
		"hold server":                        {125, 3, "no_listener", "unexpected argument"},
		"hold --delay=50 --grace-period=30":  {125, 3, "no_listener", "does not fit"},
		"LAMEDUCK_UNTIL=x hold":              {125, 3, "no_listener", "invalid condition"},
		"hold --until=elapsed --quiet-for=1": {125, 3, "no_listener", "has no effect"},
		"hold --termination-log=/proc":       {125, 3, "no_listener", "is a directory"},
		"--quiet-for=x":                      {125, 4, "no_listener", "invalid duration"},
		"--until=quiet --grace-period=60":    {0, 3, "no_listener", "no command: holding as lameduck hold"},
		"--until=quiet --preset=nginx":       {125, 1, "", "no command to run"},
		"--untl=quiet":                       {125, 1, "", "did you mean --until?"},
	} {
		t.Run(strings.ReplaceAll(hook, "/", ""), func(t *testing.T) {
			h := startHost(t, box.Setup{}, []string{"/bin/sh", "-c", `"$@"; exit $?`, "sh"})
			h.Send(hook)
			h.wantHook(want.code, 0, want.reason)
			if lines := h.Messages(); len(lines) != want.lines || !strings.Contains(lines[0], want.says) {
				t.Errorf("PID 1's stderr %q, want %d lines, the first with %q", lines, want.lines, want.says)
			}
		})
	}
}

// TestHoldNotHook: on a terminal, and where lameduck hold is PID 1, a wrong flag is an error at
// once.
func TestHoldNotHook(t *testing.T) {
	s := box.OnTerminal(t, false, box.Binary, "hold", "--dely=15", "--delay=60", "--grace-period=90")
	s.WaitFor("did you mean --delay?")
	s.WantExit(125)
	b := box.Boot(t, "hold --dely=15")
	b.WantExit(125)
	b.WantOneLine("did you mean --delay?")
}
