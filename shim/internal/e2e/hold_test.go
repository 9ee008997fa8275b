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

// hosted is such a container.
type hosted struct{ *served }

// hosts starts one: its PID 1 is the words before, running the host, which serves
// how.
func hosts(t *testing.T, how string, env []string, before ...string) hosted {
	t.Helper()
	t.Parallel()
	return hostsIn(t, asPID1, how, env, before...)
}

func hostsIn(t *testing.T, attr syscall.SysProcAttr, how string, env []string, before ...string) hosted {
	t.Helper()
	b := newBox(t, "stage", append(env, "BINARY="+binary))
	b.cmd.SysProcAttr = &attr
	b.cmd.Args = append(append(b.cmd.Args[:3:3], before...), self("host", how)...)
	b.run()
	h := hosted{&served{box: b}}
	h.out.wait(t, "host ready")
	if how != "none" {
		h.port = strings.Fields(h.out.wait(t, "port ").text)[1]
	}
	return h
}

// ended is how a hook ended, and when; the rest is what it said.
func (h hosted) ended() (code int, took time.Duration, said []string) {
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

// over ends the container.
func (h hosted) over() {
	h.t.Helper()
	h.tell("exit 0")
	h.wants(0)
}

// ends wants the hook to end with a code, not before some time nor much later, and
// its last line to have text in it.
func (h hosted) ends(code int, at time.Duration, text string) (said []string) {
	h.t.Helper()
	got, took, said := h.ended()
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
			h := hosts(t, "server", nil, before...)
			h.tell("hold --delay=0 --quiet-for=2 --grace-period=30")
			h.out.wait(t, "hook: lameduck: hold: holding 0 s to 19 s until quiet; TERM skips")
			start := time.Now()
			for range 8 {
				h.short("127.0.0.1")
				time.Sleep(200 * time.Millisecond) // the traffic that there is
			}
			traffic := time.Since(start)
			said := h.ends(0, traffic+1500*time.Millisecond, " new connections ") // the first may have come before it looked
			if line := said[len(said)-1]; !strings.Contains(line, "(quiet); 8 ") && !strings.Contains(line, "(quiet); 7 ") {
				t.Errorf("said %q", line)
			}
			h.over()
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
	h := hosts(t, "none", nil)
	h.tell("same hold")
	h.out.wait(t, "hook left 0")
	h.over()
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
			h := hosts(t, "server", c.env, before...)
			h.tell(c.how + "LAMEDUCK_DELAY=15 hold --grace-period=30")
			said := h.ends(0, 0, "lameduck: hold: PID 1 is a lameduck that holds by itself; nothing to do")
			h.over()
			if len(said) != 1 || c.how == "" && (len(h.err.all()) != 1 || h.err.all()[0].text != said[0]) {
				t.Errorf("it said %q, and to PID 1 %v", said, h.err.all())
			}
		})
	}
}

// TestHoldElsewhereJSON: that is said in the form that was asked for.
func TestHoldElsewhereJSON(t *testing.T) {
	h := hosts(t, "none", nil, binary, "--delay=15", "--grace-period=60", "--")
	h.tell("hold --log-format=json")
	said := h.ends(0, 0, "holds by itself")
	if !json.Valid([]byte(said[0])) {
		t.Errorf("said %q", said)
	}
	h.over()
}

// TestHoldSkipped: TERM and INT end it at once, from the first moment on.
func TestHoldSkipped(t *testing.T) {
	for name, why := range map[string]string{"TERM": "(second_signal)", "INT": "(interrupt)"} {
		for _, wait := range []time.Duration{0, 1200 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				h := hosts(t, "server", nil)
				h.tell("hold --delay=15 --grace-period=60")
				h.out.wait(t, "holding 15 s")
				time.Sleep(wait) // what comes within a second is no repetition
				h.tell("send " + name)
				h.ends(0, wait, why)
				h.over()
			})
		}
	}
}

// TestHoldEnds: why else a hook may end.
func TestHoldEnds(t *testing.T) {
	t.Run("ceiling", func(t *testing.T) {
		h := hosts(t, "server", nil)
		h.tell("hold --delay=0 --max-delay=3 --quiet-for=1 --grace-period=30")
		h.out.wait(t, "holding")
		for range 40 {
			h.short("127.0.0.1")
			time.Sleep(100 * time.Millisecond) // the traffic that there is
		}
		said := h.ends(0, 3*time.Second, "lameduck: warning: traffic may not have stopped: the hold reached its ceiling")
		if len(said) != 3 || !strings.Contains(said[1], "(ceiling)") {
			t.Errorf("said %q", said)
		}
		h.over()
	})
	t.Run("no listener", func(t *testing.T) {
		h := hosts(t, "none", nil)
		h.tell("hold")
		h.ends(0, 0, "(no_listener)")
		h.over()
	})
	t.Run("server killed", func(t *testing.T) {
		h := hosts(t, "child", nil)
		h.tell("hold --delay=20 --grace-period=60 --log-level=debug")
		h.out.wait(t, "look busy")
		start := time.Now()
		h.tell("crash")
		h.out.wait(t, "hook left 0")
		if took := time.Since(start); took < 2*time.Second || took > 6*time.Second {
			t.Errorf("it ended %v after the server", took)
		}
		h.ends(0, 3*time.Second-500*time.Millisecond, "(no_listener)")
		h.over()
	})
	t.Run("elapsed", func(t *testing.T) {
		h := hosts(t, "server", nil)
		h.tell("hold --until=elapsed --delay=1 --grace-period=30")
		h.ends(0, time.Second, "hold: held 1.0 s (elapsed)")
		h.over()
	})
	t.Run("json", func(t *testing.T) {
		h := hosts(t, "server", nil)
		h.tell("LAMEDUCK_X=1 hold --delay=0 --quiet-for=0.5 --grace-period=30 --log-format=json --log-level=debug")
		said := h.ends(0, 500*time.Millisecond, `"trigger":"hold"`)
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
		h.over()
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
	h := hostsIn(t, attr, "none", nil)
	h.tell("as=65534 hold --delay=0 --quiet-for=1 --grace-period=30")
	h.ended()
	h.over()
	h = hostsIn(t, asPID1, "server", nil)
	h.tell("as=65534 hold --delay=0 --quiet-for=1 --max-delay=3 --grace-period=30 --count-port=" + h.port)
	h.ends(0, time.Second, "(quiet)")
	h.over()
}

// TestHoldRefused: flags that it has not, and values that are wrong, are one line
// and 125; what belongs to lameduck itself is let be in the environment.
func TestHoldRefused(t *testing.T) {
	h := hosts(t, "none", nil)
	for _, words := range []string{"hold --delay=x", "hold --rewrite=TERM:USR1", "hold server", "hold --delay=50 --grace-period=30",
		"LAMEDUCK_UNTIL=x hold", "hold --until=elapsed --quiet-for=1 --delay=1", "hold --termination-log=/proc"} {
		before := len(h.out.all())
		h.tell(words)
		h.out.until(t, words, func() bool { return len(h.out.said) >= before+2 })
		got := h.out.all()[before:]
		if len(got) != 2 || !strings.HasPrefix(got[0].text, "hook: lameduck: ") || !strings.HasPrefix(got[1].text, "hook left 125") {
			t.Errorf("%s: %v", words, got)
		}
	}
	before := len(h.out.all())
	h.tell("LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_LINGER=5 LAMEDUCK_GROUP=maybe LAMEDUCK_STOP_SIGNAL=QUIT hold")
	h.out.until(t, "its end", func() bool { return len(h.out.said) >= before+3 })
	if got := h.out.all()[before:]; len(got) != 3 || !strings.Contains(got[0].text, "holding") || !strings.HasPrefix(got[2].text, "hook left 0") {
		t.Errorf("with others' variables: %v", got)
	}
	h.over()
}

// TestHoldPoor: standard error may be stuck or closed, and standard input closed.
func TestHoldPoor(t *testing.T) {
	for _, how := range []string{"stuck", "2>&-", "2>/dev/full", "<&-", "<&- >&- 2>&-"} {
		t.Run(how, func(t *testing.T) {
			h := hosts(t, "server", nil)
			h.tell(how + " hold --delay=1 --until=elapsed --grace-period=30")
			code, took, _ := h.ended()
			if code != 0 || took < time.Second || took > 3*time.Second {
				t.Errorf("left with %d after %v", code, took)
			}
			h.err.wait(t, "(elapsed)") // PID 1's is another
			h.over()
		})
	}
}

// TestHoldFullPids: no process and no thread can be had any more while it holds.
func TestHoldFullPids(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "pids")
	script := `("$0" hold --delay=2 --quiet-for=0.2 --grace-period=30 --log-level=debug; echo hook left $?) & exec "$@"`
	b := newBox(t, "stage:cgroup="+string(group), nil)
	b.cmd.Args = append(append(b.cmd.Args[:3:3], "/bin/sh", "-c", script, binary), self("sturdy")...)
	b.run()
	b.out.wait(t, "ready")
	b.err.wait(t, "holding 2 s")
	group.set(t, "pids.max", group.get(t, "pids.current")+20)
	b.tell("fill")
	b.out.wait(t, "full")
	b.out.wait(t, "hook left 0")
	b.err.wait(t, "(no_listener)")
	b.tell("exit 0")
	b.wants(0)
}

// TestHoldOtherSignals: none but TERM and INT ends it.
func TestHoldOtherSignals(t *testing.T) {
	h := hosts(t, "server", nil)
	h.tell("hold --delay=10 --grace-period=60")
	h.out.wait(t, "holding 10 s")
	for _, s := range []string{"HUP", "USR1", "WINCH", "TSTP", "PIPE"} {
		h.tell("send " + s)
	}
	h.tell("send TERM")
	h.ends(0, 0, "(second_signal)")
	h.over()
}
