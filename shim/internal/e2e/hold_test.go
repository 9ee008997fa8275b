package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of lameduck hold as a preStop hook, in a container with another PID 1 or with a
// lameduck as PID 1.

// hookHost is a container with the host helper, which starts hooks.
type hookHost struct{ *serverBox }

// startHookHost starts a container. PID 1 is the command of the words before, or the host
// helper without such words; mode is the first argument of the host helper.
func startHookHost(t *testing.T, mode string, env []string, before ...string) hookHost {
	t.Helper()
	t.Parallel()
	return startHookHostIn(t, asPID1, mode, env, before...)
}

// startHookHostIn is startHookHost with other namespaces, and not parallel.
func startHookHostIn(t *testing.T, attr syscall.SysProcAttr, mode string, env []string, before ...string) hookHost {
	t.Helper()
	connectedOnce()
	b := newBox(t, "stage", append(env, "BINARY="+binary))
	b.cmd.SysProcAttr = &attr
	b.cmd.Args = append(append(b.cmd.Args[:3:3], before...), helperCommand("host", mode)...)
	b.run()
	h := hookHost{&serverBox{box: b}}
	h.out.wait(t, "host ready")
	if mode != "none" {
		h.port = strings.Fields(h.out.wait(t, "port ").text)[1]
	}
	return h
}

// hookResult waits for the end of the hook, and returns its exit code, time and output.
func (h hookHost) hookResult() (code int, took time.Duration, output []string) {
	h.t.Helper()
	var ms int64
	fmt.Sscanf(h.out.wait(h.t, "hook exited").text, "hook exited %d after %d ms", &code, &ms)
	for _, line := range h.out.all() {
		if text, ok := strings.CutPrefix(line.text, "hook: "); ok {
			output = append(output, text)
		}
	}
	return code, time.Duration(ms) * time.Millisecond, output
}

// shutDown ends the container, and wants the exit code 0.
func (h hookHost) shutDown() {
	h.t.Helper()
	h.sendLine("exit 0")
	h.wantExit(0)
}

// wantHookExit waits for the end of the hook, and wants this exit code, at this time or up to
// 2.5 s later, and text in its lines. wantHookExit returns the hook's output.
func (h hookHost) wantHookExit(code int, at time.Duration, text string) (output []string) {
	h.t.Helper()
	got, took, output := h.hookResult()
	if got != code || took < at || took > at+2500*time.Millisecond || len(output) == 0 || !strings.Contains(strings.Join(output, "\n"), text) {
		h.t.Errorf("the hook exited with %d after %v, want %d after %v; output\n%s\nwant %q", got, took, code, at, strings.Join(output, "\n"), text)
	}
	return output
}

// TestHold: a hook in an ordinary container holds while connections arrive, and its lines go
// to PID 1's standard error too.
func TestHold(t *testing.T) {
	for name, before := range map[string][]string{
		"helper": nil, "shell": {"/bin/sh", "-c", `"$@"; exit $?`, "sh"}, "lameduck without a hold": {binary, "--"},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHookHost(t, "server", nil, before...)
			h.sendLine("hold --delay=0 --quiet-for=2 --grace-period=30")
			h.out.wait(t, "hook: lameduck: hold: holding up to 19 s until quiet; TERM ends the wait")
			start := time.Now()
			for range 8 {
				h.shortConn("127.0.0.1")
				time.Sleep(200 * time.Millisecond) // the traffic goes on for 1.6 s
			}
			traffic := time.Since(start)
			output := h.wantHookExit(0, traffic+1500*time.Millisecond, " new connections ")
			wantMatch(t, output[1], `: held \d\.\d s \(quiet\) of 30 s; [78] new connections `) // the first may precede the first sample
			h.shutDown()
			if len(output) != 3 {
				t.Errorf("the hook's stderr\n%s\nwant three lines", strings.Join(output, "\n"))
			}
			h.wantAtPID1(output)
		})
	}
}

// TestHoldOnce: a hook with PID 1's standard error writes each line once.
func TestHoldOnce(t *testing.T) {
	h := startHookHost(t, "none", nil)
	h.sendLine("same hold")
	h.out.wait(t, "hook exited 0")
	h.shutDown()
	if stderr := h.err.all(); len(stderr) != 2 {
		t.Errorf("PID 1's stderr: %v, want two lines", stderr)
	}
}

// TestHoldElsewhere: where PID 1 is a lameduck with a hold, the hook returns at once.
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
				t.Skip("needs root, to become another user")
			}
			before := slices.Clone(c.before)
			if link, ok := strings.CutPrefix(before[0], "@"); ok {
				before[0] = t.TempDir() + "/" + link
				testutil.Must(0, syscall.Symlink(binary, before[0]))
			}
			h := startHookHost(t, "server", c.env, before...)
			h.sendLine(c.how + "LAMEDUCK_DELAY=15 hold --grace-period=30")
			output := h.wantHookExit(0, 0, "lameduck: hold: PID 1 is a lameduck that holds by itself; nothing to do")
			h.shutDown()
			if len(output) != 1 || c.how == "" && (len(h.err.all()) != 1 || h.err.all()[0].text != output[0]) {
				t.Errorf("the hook's stderr %q, PID 1's stderr %v; want the same line", output, h.err.all())
			}
		})
	}
}

// TestHoldElsewhereJSON: --log-format applies to the line of such a hook.
func TestHoldElsewhereJSON(t *testing.T) {
	h := startHookHost(t, "none", nil, binary, "--delay=15", "--grace-period=60", "--")
	h.sendLine("hold --log-format=json")
	output := h.wantHookExit(0, 0, "holds by itself")
	if !json.Valid([]byte(output[0])) {
		t.Errorf("output %q, want JSON", output)
	}
	h.shutDown()
}

// TestHoldSkipped: TERM and INT end a hook at once, from the first moment on.
func TestHoldSkipped(t *testing.T) {
	for name, why := range map[string]string{"TERM": "(second signal)", "INT": "(INT arrived)"} {
		for _, wait := range []time.Duration{0, 1200 * time.Millisecond} {
			t.Run(fmt.Sprint(name, " after ", wait), func(t *testing.T) {
				h := startHookHost(t, "server", nil)
				h.sendLine("hold --delay=15 --grace-period=60")
				h.out.wait(t, "holding 15 s")
				time.Sleep(wait) // the subject: before and after the second in which duplicates are ignored
				h.sendLine("send " + name)
				h.wantHookExit(0, wait, why)
				h.shutDown()
			})
		}
	}
}

// TestHoldEnds: the other reasons for the end of a hook.
func TestHoldEnds(t *testing.T) {
	t.Run("ceiling", func(t *testing.T) {
		h := startHookHost(t, "server", nil)
		h.sendLine("hold --delay=0 --max-delay=3 --quiet-for=1 --grace-period=30")
		h.out.wait(t, "holding")
		for range 40 {
			h.shortConn("127.0.0.1")
			time.Sleep(100 * time.Millisecond) // the traffic goes on past the ceiling
		}
		output := h.wantHookExit(0, 3*time.Second, "lameduck: warning: traffic may not have stopped: the hold reached its ceiling")
		if !strings.Contains(output[1], "(ceiling") || !strings.Contains(output[2], "held by new connections") {
			t.Errorf("output %q, want the end at the ceiling, and why", output)
		}
		h.shutDown()
	})
	t.Run("no listener", func(t *testing.T) {
		h := startHookHost(t, "none", nil)
		h.sendLine("hold")
		h.wantHookExit(0, 0, "(nothing listens)")
		h.shutDown()
	})
	t.Run("server killed", func(t *testing.T) {
		h := startHookHost(t, "child", nil)
		h.sendLine("hold --delay=20 --grace-period=60 --log-level=debug")
		h.out.wait(t, "sample busy")
		start := time.Now()
		h.sendLine("crash")
		h.out.wait(t, "hook exited 0")
		if took := time.Since(start); took < 2*time.Second || took > 6*time.Second {
			t.Errorf("the hook ended %v after the server, want 2 s to 6 s", took)
		}
		h.wantHookExit(0, 3*time.Second-500*time.Millisecond, "(nothing listens)")
		h.shutDown()
	})
	t.Run("elapsed", func(t *testing.T) {
		h := startHookHost(t, "server", nil)
		h.sendLine("hold --until=elapsed --delay=1 --grace-period=30")
		h.wantHookExit(0, time.Second, "hold: nothing in flight: held 1.0 s (elapsed) of 30 s")
		h.shutDown()
	})
}

// TestHoldJSON: with --log-format=json every line of a hook is a JSON object.
func TestHoldJSON(t *testing.T) {
	h := startHookHost(t, "server", nil)
	h.sendLine("LAMEDUCK_X=1 hold --delay=0 --quiet-for=0.5 --grace-period=30 --log-format=json --log-level=debug")
	output := h.wantHookExit(0, 500*time.Millisecond, `"trigger":"hold"`)
	for _, line := range output {
		var e jsonReport
		if json.Unmarshal([]byte(line), &e) != nil || e.Schema != 1 || e.Level == "" || e.Message == "" {
			t.Errorf("line %q, want JSON with schema, level and message", line)
		}
	}
	if len(output) < 4 {
		t.Errorf("output %q, want at least four lines", output)
	}
	h.shutDown()
}

// TestHoldUnprivileged: a hook as another user, without access to the descriptors of other
// processes, holds by the listeners of the network namespace.
func TestHoldUnprivileged(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root, to become another user")
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

// TestHoldAnyway: a hook with an error says so, also on PID 1's standard error, holds with the
// defaults, and exits 125.
func TestHoldAnyway(t *testing.T) {
	for words, says := range map[string]string{
		"hold --quite-for=2 --quiet-for=0.2": "unknown flag --quite-for: did you mean --quiet-for? (lameduck hold --help",
		"hold --delay=x":                     "--delay=x (LAMEDUCK_DELAY): invalid duration",
		"hold --rewrite TERM:USR1":           "unknown flag --rewrite: lameduck itself has the flag, lameduck hold does not (",
		"hold server":                        `unexpected argument "server" (`,
		"hold --delay=50 --grace-period=30":  "does not fit",
		"LAMEDUCK_UNTIL=x hold":              "--until=x (LAMEDUCK_UNTIL): invalid condition",
		"hold --until=elapsed --quiet-for=1": "--quiet-for=1 (LAMEDUCK_QUIET_FOR) has no effect",
		"hold --termination-log=/proc":       "is a directory: give a file, or none; holding without a termination log",
	} {
		t.Run(words, func(t *testing.T) {
			h := startHookHost(t, "none", nil)
			h.sendLine(words)
			code, _, output := h.hookResult()
			h.shutDown()
			if code != 125 || len(output) != 3 || !strings.HasPrefix(output[0], "lameduck: hold: ") || !strings.Contains(output[0], says) || !strings.Contains(output[0], "; holding with") {
				t.Errorf("exit code %d, output\n%s\nwant 125 and three lines, the first with\n%s", code, strings.Join(output, "\n"), says)
			} else if !strings.Contains(output[1], "holding") || !strings.Contains(output[2], "held ") {
				t.Errorf("output\n%s\nwant a hold", strings.Join(output, "\n"))
			}
			h.wantAtPID1(output)
		})
	}
}

// wantAtPID1 wants the lines of the hook on PID 1's standard error.
func (h hookHost) wantAtPID1(output []string) {
	h.t.Helper()
	var atPID1 []string
	for _, line := range h.err.all() {
		atPID1 = append(atPID1, line.text)
	}
	if !slices.Equal(output, atPID1) {
		h.t.Errorf("PID 1's stderr\n%s\nwant the lines of the hook\n%s", strings.Join(atPID1, "\n"), strings.Join(output, "\n"))
	}
}

// TestHoldForgotten: a preStop hook without the word hold, and with flags of the hold alone,
// holds; with another flag it is an error. The container's log has both.
func TestHoldForgotten(t *testing.T) {
	for words, want := range map[string]struct {
		code, lines int
		says        string
	}{
		"--until=quiet --quiet-for=0.2 --grace-period=60": {0, 3, "lameduck: warning: no command: holding as lameduck hold"},
		"--quiet-for=x":                {125, 4, "lameduck: hold: --quiet-for=x (LAMEDUCK_QUIET_FOR): invalid duration"},
		"--until=quiet --preset=nginx": {125, 1, "lameduck: no command to run"},
		"--untl=quiet":                 {125, 1, "lameduck: unknown flag --untl: did you mean --until?"},
	} {
		t.Run(words, func(t *testing.T) {
			h := startHookHost(t, "none", nil, "/bin/sh", "-c", `"$@"; exit $?`, "sh")
			h.sendLine(words)
			code, _, output := h.hookResult()
			h.shutDown()
			if code != want.code || len(output) != want.lines || !strings.HasPrefix(output[0], want.says) {
				t.Errorf("exit code %d, output\n%s\nwant %+v", code, strings.Join(output, "\n"), want)
			}
			if held := strings.Contains(output[len(output)-1], "held "); held != (want.lines > 1) {
				t.Errorf("a hold took place: %v", held)
			}
			h.wantAtPID1(output)
		})
	}
}

// TestHoldOnStop: --on-stop of a hook runs in the directory of the hook.
func TestHoldOnStop(t *testing.T) {
	h := startHookHost(t, "none", nil)
	h.sendLine("hold --on-stop=pwd --until=elapsed --grace-period=30")
	dir := testutil.Must(os.Getwd())
	h.out.wait(t, "hook: "+dir)
	h.wantHookExit(0, 0, "held ")
	h.shutDown()
}

// TestHoldAnywayElsewhere: a hook whose flags are wrong beside a lameduck that holds says so,
// and exits 125 at once.
func TestHoldAnywayElsewhere(t *testing.T) {
	h := startHookHost(t, "server", nil, binary, "--delay=15", "--grace-period=60", "--")
	h.sendLine("hold --dely=15")
	output := h.wantHookExit(125, 0, "lameduck: hold: PID 1 is a lameduck that holds by itself; nothing to do")
	h.shutDown()
	if len(output) != 2 || !strings.Contains(output[0], "did you mean --delay?") {
		t.Errorf("output %q, want the error first", output)
	}
}

// TestHoldOnTerminal: on a terminal a wrong flag is an error at once.
func TestHoldOnTerminal(t *testing.T) {
	s := startOnTerminal(t, false, binary, "hold", "--dely=15", "--delay=60", "--grace-period=90")
	s.waitFor("did you mean --delay? (lameduck hold --help lists the flags")
	s.wantExit(125)
	if s.count("hold: holding") > 0 {
		t.Error("a hold took place")
	}
}

// TestHoldAsPID1: a lameduck hold that is PID 1 is no hook, and a wrong flag an error at once.
func TestHoldAsPID1(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "hold", "--dely=15")
	b.wantExit(125)
	if stderr := b.err.all(); len(stderr) != 1 || !strings.Contains(stderr[0].text, "did you mean --delay?") {
		t.Errorf("stderr %v, want one line", stderr)
	}
}

// TestHoldForeignVariables: a hook ignores variables of flags that only lameduck itself has.
func TestHoldForeignVariables(t *testing.T) {
	h := startHookHost(t, "none", nil)
	h.sendLine("LAMEDUCK_REWRITE=TERM:USR1 LAMEDUCK_LINGER=5 LAMEDUCK_GROUP=maybe LAMEDUCK_STOP_SIGNAL=QUIT hold")
	if output := h.wantHookExit(0, 0, "held "); len(output) != 2 {
		t.Errorf("output %q, want two lines", output)
	}
	h.shutDown()
}

// TestHoldPoor: a hook holds with standard error full or closed, and with standard input and
// output closed.
func TestHoldPoor(t *testing.T) {
	for _, how := range []string{"stuck", "2>&-", "2>/dev/full", "<&-", "<&- >&- 2>&-"} {
		t.Run(how, func(t *testing.T) {
			h := startHookHost(t, "server", nil)
			h.sendLine(how + " hold --delay=1 --until=elapsed --grace-period=30")
			code, took, _ := h.hookResult()
			if code != 0 || took < time.Second || took > 3*time.Second {
				t.Errorf("exit code %d after %v, want 0 after 1 s to 3 s", code, took)
			}
			h.err.wait(t, "(elapsed)") // PID 1's standard error works
			h.shutDown()
		})
	}
}

// TestHoldFullPids: a hook needs no new process and no new thread during the hold.
func TestHoldFullPids(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, "pids")
	script := `("$0" hold --delay=2 --quiet-for=0.2 --grace-period=30 --log-level=debug; echo hook exited $?) & exec "$@"`
	b := newBox(t, "stage:cgroup="+string(group), nil)
	b.cmd.Args = append(append(b.cmd.Args[:3:3], "/bin/sh", "-c", script, binary), helperCommand("sturdy")...)
	b.run()
	b.out.wait(t, "ready")
	b.err.wait(t, "holding 2 s")
	group.set(t, "pids.max", group.get(t, "pids.current")+20)
	b.sendLine("fill")
	b.out.wait(t, "full")
	b.out.wait(t, "hook exited 0")
	b.err.wait(t, "(nothing listens)")
	b.sendLine("exit 0")
	b.wantExit(0)
}

// TestHoldOtherSignals: no signals but TERM and INT end a hook.
func TestHoldOtherSignals(t *testing.T) {
	h := startHookHost(t, "server", nil)
	h.sendLine("hold --delay=10 --grace-period=60")
	h.out.wait(t, "holding 10 s")
	for _, s := range []string{"HUP", "USR1", "WINCH", "TSTP", "PIPE"} {
		h.sendLine("send " + s)
	}
	h.sendLine("send TERM")
	h.wantHookExit(0, 0, "(second signal)")
	h.shutDown()
}
