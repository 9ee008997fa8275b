package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// The tests of the drop-in names run on the original inits too, where installed: a test that
// the original fails has a wrong expectation. Intended differences are named in the tests.
var originals = flag.Bool("rivals", true, "run the tests of the drop-in names on the installed tini, dumb-init and catatonit too")

// onEachInit runs a test on lameduck under an init's name, and on the original init.
func onEachInit(t *testing.T, name string, test func(t *testing.T, init string)) {
	t.Run(name+" by lameduck", func(t *testing.T) {
		t.Parallel()
		test(t, linkUnderName(t, name))
	})
	t.Run(name+" itself", func(t *testing.T) {
		t.Parallel()
		if !*originals {
			t.Skip("-rivals=false")
		}
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name, " is not installed")
		}
		test(t, path)
	})
}

// linkUnderName returns the path of a link to lameduck with another name.
func linkUnderName(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(binary, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// isLameduck reports whether init is a link to lameduck.
func isLameduck(init string) bool {
	path, err := filepath.EvalSymlinks(init)
	return err == nil && path == binary
}

// bootUnderName is boot with lameduck under another name.
func bootUnderName(t *testing.T, name string, env []string, args ...string) *box {
	t.Helper()
	return bootInit(t, linkUnderName(t, name), env, args...)
}

// bootInit is boot with any init.
func bootInit(t *testing.T, init string, env []string, args ...string) *box {
	t.Helper()
	netns.Need(t)
	words := helperCommand("stage", append([]string{init}, args...)...)
	return startProgram(t, env, asPID1, words...)
}

// bootCatch starts an init as PID 1 with the catch helper, and waits until the helper is ready.
func bootCatch(t *testing.T, init string, flags ...string) *box {
	t.Helper()
	b := bootInit(t, init, nil, append(flags, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// blockedSignals returns the signals that the first thread of a process blocks.
func blockedSignals(pid int) sig.Set {
	bits, _ := strconv.ParseUint(status(pid, "SigBlk"), 16, 64)
	return sig.Set(bits)
}

// startProgram starts a program between pipes. The environment is PATH and env.
func startProgram(t *testing.T, env []string, attr syscall.SysProcAttr, words ...string) *box {
	t.Helper()
	b := newProgram(t, env, attr, words...)
	b.run()
	return b
}

// TestDropinTerminal: dumb-init leaves the terminal to its command's session. The HUP and
// CONT with which the kernel notifies dumb-init are not passed on; later HUPs and CONTs are.
func TestDropinTerminal(t *testing.T) {
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		s := startOnTerminal(t, true, append([]string{init}, helperCommand("catch")...)...)
		s.waitFor("ready")
		for _, name := range []string{"HUP", "CONT", "HUP", "CONT"} {
			unix.Kill(s.cmd.Process.Pid, unix.Signal(testutil.Must(sig.Parse(name))))
			s.waitFor("got " + name)
		}
		s.typeText(ctrlC)
		s.waitFor("got INT")
		s.typeText("exit 7\n")
		s.wantExit(7)
		for name, n := range map[string]int{"got HUP": 2, "got CONT": 2, "got INT": 1} {
			if got := s.count(name); got != n {
				t.Errorf("%q appears %d times, want %d", name, got, n)
			}
		}
	})
	onEachInit(t, "tini", func(t *testing.T, init string) {
		s := startOnTerminal(t, true, append([]string{init, "--"}, helperCommand("catch")...)...)
		s.waitFor("ready")
		unix.Kill(s.cmd.Process.Pid, unix.SIGHUP)
		s.waitFor("got HUP")
		s.typeText(ctrlC)
		s.waitFor("got INT")
		s.typeText("exit 7\n")
		s.wantExit(7)
	})
}

// TestDropinWarnReaped: with -w tini warns about every orphan that tini reaps.
func TestDropinWarnReaped(t *testing.T) {
	for call, warns := range map[string]bool{"tini -w": true, "tini": false, "TINI_VERBOSITY=0 tini -w": false} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, "tini", func(t *testing.T, init string) {
				env, words := splitEnv(call)
				script := []string{"--", "sh", "-c", `( : & ); exec "$@"`, "sh"}
				b := bootInit(t, init, env, slices.Concat(words[1:], script, helperCommand("zombies"))...)
				b.wantExit(0)
				stderr := fmt.Sprint(b.err.all())
				if strings.Contains(strings.ToLower(stderr), "reaped") != warns {
					t.Errorf("stderr %s, want a warning: %v", stderr, warns)
				}
			})
		})
	}
}

// TestDropinParentDeath: with -p SIG tini gets SIG when its parent exits, and passes SIG on
// like any other signal.
func TestDropinParentDeath(t *testing.T) {
	onEachInit(t, "tini", func(t *testing.T, init string) {
		script := []string{"sh", "-c", `exec 3<&0; "$@" <&3 & wait`, "sh", init, "-s", "-p", "SIGUSR1", "--"}
		b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, append(script, helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		b.cmd.Process.Kill()
		b.out.wait(t, "got USR1")
		b.sendLine("exit 0")
		<-b.out.eof
	})
}

// TestDropinSubreaper: an init other than PID 1 adopts orphans: tini with a flag or a
// variable, lameduck under the name tini in any case.
func TestDropinSubreaper(t *testing.T) {
	for _, call := range []string{"tini -s", "TINI_SUBREAPER= tini", "TINI_SUBREAPER=0 tini", "catatonit"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			onEachInit(t, words[0], func(t *testing.T, init string) {
				pid, adopter := adoption(t, env, append([]string{init}, words[1:]...)...)
				if adopter != pid {
					t.Errorf("the orphan's parent is %s, want the init, %s", adopter, pid)
				}
			})
		})
	}
}

// TestDropinHold: under the name of an init, lameduck holds as LAMEDUCK_* variables say:
// an init that a runtime injects gets no flags. The command gets all other variables.
func TestDropinHold(t *testing.T) {
	env := []string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60", "LAMEDUCK_REWRITE=TERM:USR2", "TINI_SUBREAPER=", "DUMB_INIT_DEBUG=0", "APP=1"}
	script := append([]string{"--", "sh", "-c", `env; exec "$@"`, "sh"}, helperCommand("catch")...)
	for name, flags := range map[string][]string{
		"docker-init": nil, "tini": {"-s"}, "tini-static": nil, "podman-init": nil, "catatonit": {"-g"}, "dumb-init": {"-c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootUnderName(t, name, env, append(flags, script...)...)
			b.out.wait(t, "ready")
			for _, line := range b.out.all() {
				if strings.HasPrefix(line.text, "LAMEDUCK_") {
					t.Errorf("the command's environment has %s", line)
				}
			}
			for _, entry := range env[3:] {
				b.out.wait(t, entry)
			}
			b.signal(sig.TERM)
			b.err.wait(t, "TERM: holding 15 s, then USR2")
			b.signal(sig.HUP) // passed on during the hold
			b.out.wait(t, "got HUP")
			b.signal(sig.INT) // ends the hold
			b.out.wait(t, "got USR2")
			b.sendLine("exit 5")
			b.wantExit(5)
			b.wantReport(sig.TERM, "interrupt", 0, sig.USR2, 5)
			for _, line := range b.out.all() {
				if line.text == "got TERM" || line.text == "got INT" {
					t.Errorf("the command printed %q", line)
				}
			}
		})
	}
	t.Run("dumb-init session", func(t *testing.T) { // -r wins over LAMEDUCK_REWRITE; the signal goes to the group
		t.Parallel()
		env := append([]string{"LAMEDUCK_DELAY=0.3"}, env[1:]...)
		b := bootUnderName(t, "dumb-init", env, "-r", "15:10", "sh", "-c", groupScript, "wait")
		b.out.wait(t, "ready")
		b.signal(sig.TERM)
		b.err.wait(t, "TERM: holding 0.3 s, then USR1")
		b.wantExit(5)
		b.out.wait(t, "second")
		b.wantReport(sig.TERM, "elapsed", 300*time.Millisecond, sig.USR1, 5)
	})
}

// holdReport matches a report: the trigger, the hold's length and end, the signal sent, and
// the command's exit code.
var holdReport = regexp.MustCompile(`^lameduck: (\S+): held (\S+) s (\([^)]+)\), sent (\w+)(?: at \+\S+ s)?, exited (\d+) at `)

// wantReport wants the report of a hold of at least this length.
func (b *box) wantReport(trigger sig.Signal, why string, length time.Duration, sent sig.Signal, code int) {
	b.t.Helper()
	line := b.err.wait(b.t, ": held ").text
	found := holdReport.FindStringSubmatch(line)
	want := []string{trigger.String(), endOfHold(why), sent.String(), strconv.Itoa(code)}
	if found == nil || !slices.Equal([]string{found[1], found[3], found[4], found[5]}, want) {
		b.t.Errorf("report %q, want %v", line, want)
		return
	}
	if seconds, _ := strconv.ParseFloat(found[2], 64); seconds < length.Seconds() {
		b.t.Errorf("held %v s, want at least %v", seconds, length)
	}
}
