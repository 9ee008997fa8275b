package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// The hook, end to end: executed in a container of which PID 1 is something else,
// or a lameduck.

// hookHost is such a container.
type hookHost struct{ *serverBox }

// startHookHost starts one: its PID 1 is the words before, running the host, which serves
// how.
func startHookHost(t *testing.T, how string, env []string, before ...string) hookHost {
	t.Helper()
	t.Parallel()
	return startHookHostIn(t, asPID1, how, env, before...)
}

func startHookHostIn(t *testing.T, attr syscall.SysProcAttr, how string, env []string, before ...string) hookHost {
	t.Helper()
	b := newBox(t, "stage", append(env, "BINARY="+binary))
	b.cmd.SysProcAttr = &attr
	b.cmd.Args = append(append(b.cmd.Args[:3:3], before...), helperCommand("host", how)...)
	b.run()
	h := hookHost{&serverBox{box: b}}
	h.out.wait(t, "host ready")
	if how != "none" {
		h.port = strings.Fields(h.out.wait(t, "port ").text)[1]
	}
	return h
}

// hookResult is how a hook ended, and when; the rest is what it said.
func (h hookHost) hookResult() (code int, took time.Duration, said []string) {
	h.t.Helper()
	var ms int64
	fmt.Sscanf(h.out.wait(h.t, "hook left").text, "hook left %d after %d ms", &code, &ms)
	for _, line := range h.out.all() {
		if text, ok := strings.CutPrefix(line.text, "hook: "); ok {
			said = append(said, text)
		}
	}
	return code, time.Duration(ms) * time.Millisecond, said
}

// shutDown ends the container.
func (h hookHost) shutDown() {
	h.t.Helper()
	h.sendLine("exit 0")
	h.wantExit(0)
}

// wantHookExit wants the hook to end with a code, not before some time nor much later, and
// its last line to have text in it.
func (h hookHost) wantHookExit(code int, at time.Duration, text string) (said []string) {
	h.t.Helper()
	got, took, said := h.hookResult()
	if got != code || took < at || took > at+2500*time.Millisecond || len(said) == 0 || !strings.Contains(said[len(said)-1], text) {
		h.t.Errorf("the hook left with %d after %v, want %d after %v, and said\n%s\nwant %q", got, took, code, at, strings.Join(said, "\n"), text)
	}
	return said
}

// TestHold: a hook in an ordinary container holds for as long as there is traffic,
// and PID 1's standard error has its lines too.
func TestHold(t *testing.T) {
	for name, before := range map[string][]string{
		"helper": nil, "shell": {"/bin/sh", "-c", `"$@"; exit $?`, "sh"}, "lameduck without a hold": {binary, "--"},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHookHost(t, "server", nil, before...)
			h.sendLine("hold --delay=0 --quiet-for=2 --grace-period=30")
			h.out.wait(t, "hook: lameduck: hold: holding 0 s to 19 s until quiet; TERM skips")
			start := time.Now()
			for range 8 {
				h.shortConn("127.0.0.1")
				time.Sleep(200 * time.Millisecond) // the traffic that there is
			}
			traffic := time.Since(start)
			said := h.wantHookExit(0, traffic+1500*time.Millisecond, " new connections ") // the first may have come before it looked
			if line := said[len(said)-1]; !strings.Contains(line, "(quiet); 8 ") && !strings.Contains(line, "(quiet); 7 ") {
				t.Errorf("said %q", line)
			}
			h.shutDown()
			var theirs []string
			for _, line := range h.err.all() {
				theirs = append(theirs, line.text)
			}
			if len(said) != 2 || !slices.Equal(said, theirs) {
				t.Errorf("it said\n%s\nand to PID 1\n%s", strings.Join(said, "\n"), strings.Join(theirs, "\n"))
			}
		})
	}
}

// TestHoldOnce: what it says is not said twice where its standard error is PID 1's.
func TestHoldOnce(t *testing.T) {
	h := startHookHost(t, "none", nil)
	h.sendLine("same hold")
	h.out.wait(t, "hook left 0")
	h.shutDown()
	if said := h.err.all(); len(said) != 2 {
		t.Errorf("PID 1 said %v", said)
	}
}

// TestHoldElsewhere: where PID 1 is a lameduck that holds there is nothing to do.
func TestHoldElsewhere(t *testing.T) {
	long := []string{"--delay=15", "--grace-period=60"}
	for name, c := range map[string]struct {
		env, before []string
		how         string
	}{
		"by flags":       {nil, append([]string{binary}, append(long, "--")...), ""},
		"by environment": {[]string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60"}, []string{binary}, ""},
		"by --until":     {nil, []string{binary, "--until=quiet", "--grace-period=60", "--"}, ""},
		"as tini":        {[]string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60"}, []string{"@tini", "-g", "--"}, ""},
		"another's":      {nil, []string{"@lameduck", "--"}, "as=65534 "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.how != "" && !isRoot() {
				t.Skip("only root can become somebody else")
			}
			before := slices.Clone(c.before)
			if link, ok := strings.CutPrefix(before[0], "@"); ok {
				before[0] = t.TempDir() + "/" + link
				testutil.Must(0, syscall.Symlink(binary, before[0]))
			}
			h := startHookHost(t, "server", c.env, before...)
			h.sendLine(c.how + "LAMEDUCK_DELAY=15 hold --grace-period=30")
			said := h.wantHookExit(0, 0, "lameduck: hold: PID 1 is a lameduck that holds by itself; nothing to do")
			h.shutDown()
			if len(said) != 1 || c.how == "" && (len(h.err.all()) != 1 || h.err.all()[0].text != said[0]) {
				t.Errorf("it said %q, and to PID 1 %v", said, h.err.all())
			}
		})
	}
}

// TestHoldElsewhereJSON: that is said in the form that was asked for.
func TestHoldElsewhereJSON(t *testing.T) {
	h := startHookHost(t, "none", nil, binary, "--delay=15", "--grace-period=60", "--")
	h.sendLine("hold --log-format=json")
	said := h.wantHookExit(0, 0, "holds by itself")
	if !json.Valid([]byte(said[0])) {
		t.Errorf("said %q", said)
	}
	h.shutDown()
}

// TestHoldSkipped: TERM and INT end it at once, from the first moment on.
func TestHoldSkipped(t *testing.T) {
	for name, why := range map[string]string{"TERM": "(second_signal)", "INT": "(interrupt)"} {
		for _, wait := range []time.Duration{0, 1200 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				h := startHookHost(t, "server", nil)
				h.sendLine("hold --delay=15 --grace-period=60")
				h.out.wait(t, "holding 15 s")
				time.Sleep(wait) // what comes within a second is no repetition
				h.sendLine("send " + name)
				h.wantHookExit(0, wait, why)
				h.shutDown()
			})
		}
	}
}

// TestHoldEnds: why else a hook may end.
func TestHoldEnds(t *testing.T) {
	t.Run("ceiling", func(t *testing.T) {
		h := startHookHost(t, "server", nil)
		h.sendLine("hold --delay=0 --max-delay=3 --quiet-for=1 --grace-period=30")
		h.out.wait(t, "holding")
		for range 40 {
			h.shortConn("127.0.0.1")
			time.Sleep(100 * time.Millisecond) // the traffic that there is
		}
		said := h.wantHookExit(0, 3*time.Second, "lameduck: warning: traffic may not have stopped: the hold reached its ceiling")
		if len(said) != 3 || !strings.Contains(said[1], "(ceiling)") {
			t.Errorf("said %q", said)
		}
		h.shutDown()
	})
	t.Run("no listener", func(t *testing.T) {
		h := startHookHost(t, "none", nil)
		h.sendLine("hold")
		h.wantHookExit(0, 0, "(no_listener)")
		h.shutDown()
	})
	t.Run("server killed", func(t *testing.T) {
		h := startHookHost(t, "child", nil)
		h.sendLine("hold --delay=20 --grace-period=60 --log-level=debug")
		h.out.wait(t, "look busy")
		start := time.Now()
		h.sendLine("crash")
		h.out.wait(t, "hook left 0")
		if took := time.Since(start); took < 2*time.Second || took > 6*time.Second {
			t.Errorf("it ended %v after the server", took)
		}
		h.wantHookExit(0, 3*time.Second-500*time.Millisecond, "(no_listener)")
		h.shutDown()
	})
	t.Run("elapsed", func(t *testing.T) {
		h := startHookHost(t, "server", nil)
		h.sendLine("hold --until=elapsed --delay=1 --grace-period=30")
		h.wantHookExit(0, time.Second, "hold: held 1.0 s (elapsed)")
		h.shutDown()
	})
	t.Run("json", func(t *testing.T) {
		h := startHookHost(t, "server", nil)
		h.sendLine("LAMEDUCK_X=1 hold --delay=0 --quiet-for=0.5 --grace-period=30 --log-format=json --log-level=debug")
		said := h.wantHookExit(0, 500*time.Millisecond, `"trigger":"hold"`)
		for _, line := range said {
			var e struct {
				Schema         int
				Level, Message string
			}
			if json.Unmarshal([]byte(line), &e) != nil || e.Schema != 1 || e.Level == "" || e.Message == "" {
				t.Errorf("said %q", line)
			}
		}
		if len(said) < 4 {
			t.Errorf("said %q", said)
		}
		h.shutDown()
	})
}

// TestHoldNobody: as somebody without rights, who sees no process of others, it
// holds by the namespace's listeners.
func TestHoldNobody(t *testing.T) {
	if !isRoot() {
		t.Skip("only root can become somebody else")
	}
	t.Parallel()
	attr := asPID1
	attr.Cloneflags |= syscall.CLONE_NEWNET
	h := startHookHostIn(t, attr, "none", nil)
	h.sendLine("as=65534 hold --delay=0 --quiet-for=1 --grace-period=30")
	h.hookResult()
	h.shutDown()
	h = startHookHostIn(t, asPID1, "server", nil)
	h.sendLine("as=65534 hold --delay=0 --quiet-for=1 --max-delay=3 --grace-period=30 --count-port=" + h.port)
	h.wantHookExit(0, time.Second, "(quiet)")
	h.shutDown()
}

// TestHoldRefused: flags that it has not, and values that are wrong, are one line
// and 125; what belongs to lameduck itself is let be in the environment.
func TestHoldRefused(t *testing.T) {
	h := startHookHost(t, "none", nil)
	for _, words := range []string{"hold --delay=x", "hold --rewrite=TERM:USR1", "hold server", "hold --delay=50 --grace-period=30",
		"LAMEDUCK_UNTIL=x hold", "hold --until=elapsed --quiet-for=1 --delay=1", "hold --termination-log=/proc"} {
		before := len(h.out.all())
		h.sendLine(words)
		h.out.waitUntil(t, words, func() bool { return len(h.out.collected) >= before+2 })
		got := h.out.all()[before:]
		if len(got) != 2 || !strings.HasPrefix(got[0].text, "hook: lameduck: ") || !strings.HasPrefix(got[1].text, "hook left 125") {
			t.Errorf("%s: %v", words, got)
		}
	}
	before := len(h.out.all())
	h.sendLine("LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_LINGER=5 LAMEDUCK_GROUP=maybe LAMEDUCK_STOP_SIGNAL=QUIT hold")
	h.out.waitUntil(t, "its end", func() bool { return len(h.out.collected) >= before+3 })
	if got := h.out.all()[before:]; len(got) != 3 || !strings.Contains(got[0].text, "holding") || !strings.HasPrefix(got[2].text, "hook left 0") {
		t.Errorf("with others' variables: %v", got)
	}
	h.shutDown()
}

// TestHoldPoor: standard error may be stuck or closed, and standard input closed.
func TestHoldPoor(t *testing.T) {
	for _, how := range []string{"stuck", "2>&-", "2>/dev/full", "<&-", "<&- >&- 2>&-"} {
		t.Run(how, func(t *testing.T) {
			h := startHookHost(t, "server", nil)
			h.sendLine(how + " hold --delay=1 --until=elapsed --grace-period=30")
			code, took, _ := h.hookResult()
			if code != 0 || took < time.Second || took > 3*time.Second {
				t.Errorf("left with %d after %v", code, took)
			}
			h.err.wait(t, "(elapsed)") // PID 1's is another
			h.shutDown()
		})
	}
}

// TestHoldFullPids: no process and no thread can be had any more while it holds.
func TestHoldFullPids(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "pids")
	script := `("$0" hold --delay=2 --quiet-for=0.2 --grace-period=30 --log-level=debug; echo hook left $?) & exec "$@"`
	b := newBox(t, "stage:cgroup="+string(group), nil)
	b.cmd.Args = append(append(b.cmd.Args[:3:3], "/bin/sh", "-c", script, binary), helperCommand("sturdy")...)
	b.run()
	b.out.wait(t, "ready")
	b.err.wait(t, "holding 2 s")
	group.set(t, "pids.max", group.get(t, "pids.current")+20)
	b.sendLine("fill")
	b.out.wait(t, "full")
	b.out.wait(t, "hook left 0")
	b.err.wait(t, "(no_listener)")
	b.sendLine("exit 0")
	b.wantExit(0)
}

// TestHoldOtherSignals: none but TERM and INT ends it.
func TestHoldOtherSignals(t *testing.T) {
	h := startHookHost(t, "server", nil)
	h.sendLine("hold --delay=10 --grace-period=60")
	h.out.wait(t, "holding 10 s")
	for _, s := range []string{"HUP", "USR1", "WINCH", "TSTP", "PIPE"} {
		h.sendLine("send " + s)
	}
	h.sendLine("send TERM")
	h.wantHookExit(0, 0, "(second_signal)")
	h.shutDown()
}
