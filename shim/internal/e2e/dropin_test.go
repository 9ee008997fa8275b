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

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// The tests of the drop-in names run on the genuine init too, wherever that is
// installed: a test that the genuine init fails asks for the wrong thing. Where
// lameduck differs on purpose the test says why.
var rivals = flag.Bool("rivals", true, "run the tests of the drop-in names on the installed tini, dumb-init and catatonit too")

// eachInit runs a test on lameduck under an init's name, and on the init.
func eachInit(t *testing.T, name string, test func(t *testing.T, init string)) {
	t.Run(name+" by lameduck", func(t *testing.T) {
		t.Parallel()
		test(t, linkAs(t, name))
	})
	t.Run(name+" itself", func(t *testing.T) {
		t.Parallel()
		if !*rivals {
			t.Skip("-rivals=false")
		}
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(name, " is not installed")
		}
		test(t, path)
	})
}

// linkAs is lameduck under another name.
func linkAs(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(binary, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// isOurs reports whether an init is such a link.
func isOurs(init string) bool {
	path, err := filepath.EvalSymlinks(init)
	return err == nil && path == binary
}

// bootAs is boot with lameduck under another name.
func bootAs(t *testing.T, name string, env []string, args ...string) *box {
	t.Helper()
	return bootInit(t, linkAs(t, name), env, args...)
}

// bootInit is boot with any init.
func bootInit(t *testing.T, init string, env []string, args ...string) *box {
	t.Helper()
	netns.Need(t)
	words := helperCommand("stage", append([]string{init}, args...)...)
	return startProgram(t, env, asPID1, words...)
}

// bootCatch is an init as PID 1 whose command catches signals, when it does.
func bootCatch(t *testing.T, init string, flags ...string) *box {
	t.Helper()
	b := bootInit(t, init, nil, append(flags, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// blocks is what the first thread of a process blocks.
func blocks(pid int) sig.Set {
	bits, _ := strconv.ParseUint(status(pid, "SigBlk"), 16, 64)
	return sig.Set(bits)
}

// startProgram starts a program between pipes, its environment being PATH and env.
func startProgram(t *testing.T, env []string, attr syscall.SysProcAttr, words ...string) *box {
	t.Helper()
	b := newProgram(t, env, attr, words...)
	b.run()
	return b
}

// TestDropinTerminal: dumb-init gives up the terminal to its command's session.
// The HUP and CONT that the kernel sends for it are nobody's; later ones pass.
func TestDropinTerminal(t *testing.T) {
	eachInit(t, "dumb-init", func(t *testing.T, init string) {
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
				t.Errorf("%q %d times, want %d", name, got, n)
			}
		}
	})
	eachInit(t, "tini", func(t *testing.T, init string) {
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

// TestDropinWarnReaped: tini says of every orphan that it reaped it, if asked to.
func TestDropinWarnReaped(t *testing.T) {
	for call, says := range map[string]bool{"tini -w": true, "tini": false, "TINI_VERBOSITY=0 tini -w": false} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "tini", func(t *testing.T, init string) {
				var env, flags []string
				for _, word := range strings.Fields(call) {
					if strings.Contains(word, "=") {
						env = append(env, word)
					} else if word != "tini" {
						flags = append(flags, word)
					}
				}
				script := []string{"--", "sh", "-c", `( : & ); exec "$@"`, "sh"}
				b := bootInit(t, init, env, slices.Concat(flags, script, helperCommand("zombies"))...)
				b.wantExit(0)
				said := fmt.Sprint(b.err.all())
				if strings.Contains(strings.ToLower(said), "reaped") != says {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

// TestDropinParentDeath: tini -p SIG sends itself SIG when its parent ends, and
// passes it on like any other.
func TestDropinParentDeath(t *testing.T) {
	eachInit(t, "tini", func(t *testing.T, init string) {
		script := []string{"sh", "-c", `exec 3<&0; "$@" <&3 & wait`, "sh", init, "-s", "-p", "SIGUSR1", "--"}
		b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, append(script, helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		b.cmd.Process.Kill()
		b.out.wait(t, "got USR1")
		b.sendLine("exit 0")
		<-b.out.eof
	})
}

// TestDropinSubreaper: orphans come to an init that is not PID 1. (tini has to be
// told, and lameduck under its name does so by itself.)
func TestDropinSubreaper(t *testing.T) {
	for _, call := range []string{"tini -s", "TINI_SUBREAPER= tini", "TINI_SUBREAPER=0 tini", "catatonit"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(call)
			var env []string
			if strings.Contains(words[0], "=") {
				env, words = words[:1], words[1:]
			}
			eachInit(t, words[0], func(t *testing.T, init string) {
				family := `echo "init $PPID"; ( "$@" & ); read end`
				inner := slices.Concat([]string{init}, words[1:], []string{"--", "sh", "-c", family, "sh"}, helperCommand("orphan"))
				b := boot(t, env, inner...)
				parent := strings.TrimPrefix(b.out.wait(t, "init ").text, "init ")
				if orphan := b.out.wait(t, "orphan ").text; orphan != "orphan "+parent {
					t.Errorf("the init is %s, but %s", parent, orphan)
				}
				b.sendLine("end")
				b.wantExit(0)
			})
		})
	}
}

// TestDropinPause: the process that only keeps a pod's namespaces reaps what
// others leave there, and ends with 0 on TERM or INT and nothing else.
func TestDropinPause(t *testing.T) {
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("nsenter is not installed")
	}
	for call, inits := range map[string][]string{"-P": {"catatonit"}, "-P no-such-program": {"catatonit"}, "": {"pause"}} {
		for _, end := range []sig.Signal{sig.TERM, sig.INT} {
			t.Run(call+" "+end.String(), func(t *testing.T) {
				t.Parallel()
				eachInit(t, inits[0], func(t *testing.T, init string) { pauseUntil(t, end, init, strings.Fields(call)) })
			})
		}
	}
}

func pauseUntil(t *testing.T, end sig.Signal, init string, flags []string) {
	b := bootInit(t, init, nil, flags...)
	awaitExec(t, b.cmd.Process.Pid, init)
	for _, s := range []sig.Signal{sig.HUP, sig.QUIT, sig.USR1, sig.USR2, sig.PIPE, sig.CONT, sig.WINCH, sig.CHLD, sig.RTMax} {
		b.signal(s)
	}
	words := append([]string{"-t", strconv.Itoa(b.cmd.Process.Pid), "-p", "-m", "sh", "-c", `( : & ); exec "$@"`, "sh"}, helperCommand("zombies")...)
	if out, err := exec.Command("nsenter", words...).CombinedOutput(); err != nil {
		t.Errorf("an orphan is not reaped: %v\n%s", err, out)
	}
	b.signal(end)
	b.wantExit(0)
	if len(b.out.all())+len(b.err.all()) > 0 {
		t.Errorf("said %v %v", b.out.all(), b.err.all())
	}
}

// awaitExec waits until a process has become an init, and sees to signals: others
// block TERM to wait for it, and ours catches 32, which Go's runtime does not.
func awaitExec(t *testing.T, pid int, init string) {
	t.Helper()
	want := testutil.Must(filepath.EvalSymlinks(init))
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		ready := blocks(pid).Has(sig.TERM)
		if isOurs(init) {
			caught, _ := proc.Caught(pid)
			ready = caught.Has(32)
		}
		if exe == want && ready {
			return
		}
	}
	t.Fatalf("%d is not yet %s", pid, init)
}

// TestDropinHold: a drop-in holds where LAMEDUCK_* says so, which an init that a
// runtime injects is told in no other way. The command gets those variables no
// more, and all others as they are.
func TestDropinHold(t *testing.T) {
	env := []string{"LAMEDUCK_DELAY=15", "LAMEDUCK_GRACE_PERIOD=60", "LAMEDUCK_REWRITE=TERM:USR2", "TINI_SUBREAPER=", "DUMB_INIT_DEBUG=0", "APP=1"}
	script := append([]string{"--", "sh", "-c", `env; exec "$@"`, "sh"}, helperCommand("catch")...)
	for name, flags := range map[string][]string{
		"docker-init": nil, "tini": {"-s"}, "tini-static": nil, "podman-init": nil, "catatonit": {"-g"}, "dumb-init": {"-c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bootAs(t, name, env, append(flags, script...)...)
			b.out.wait(t, "ready")
			for _, line := range b.out.all() {
				if strings.HasPrefix(line.text, "LAMEDUCK_") {
					t.Errorf("the command gets %s", line)
				}
			}
			for _, entry := range env[3:] {
				b.out.wait(t, entry)
			}
			b.signal(sig.TERM)
			b.err.wait(t, "TERM: holding 15 s, then USR2")
			b.signal(sig.HUP) // others pass
			b.out.wait(t, "got HUP")
			b.signal(sig.INT) // ends the hold
			b.out.wait(t, "got USR2")
			b.sendLine("exit 5")
			b.wantExit(5)
			b.wantReport(sig.TERM, "interrupt", 0, sig.USR2, 5)
			for _, line := range b.out.all() {
				if line.text == "got TERM" || line.text == "got INT" {
					t.Error(line)
				}
			}
		})
	}
	t.Run("dumb-init session", func(t *testing.T) { // its rewrite wins, and all of the group gets it
		t.Parallel()
		env := append([]string{"LAMEDUCK_DELAY=0.3"}, env[1:]...)
		b := bootAs(t, "dumb-init", env, "-r", "15:10", "sh", "-c", groupScript, "wait")
		b.out.wait(t, "ready")
		b.signal(sig.TERM)
		b.err.wait(t, "TERM: holding 0.3 s, then USR1")
		b.wantExit(5)
		b.out.wait(t, "second")
		b.wantReport(sig.TERM, "elapsed", 300*time.Millisecond, sig.USR1, 5)
	})
}

// holdReport is a report: what began the stop, how long the hold was and why it
// ended, what was sent, and the command's exit code.
var holdReport = regexp.MustCompile(`^lameduck: (\S+): held (\S+) s \((\w+)\); sent (\S+) at \+\S+ s; the command exited (\d+) `)

// wantReport wants the report of a hold that was this long at least.
func (b *box) wantReport(trigger sig.Signal, why string, length time.Duration, sent sig.Signal, code int) {
	b.t.Helper()
	line := b.err.wait(b.t, ": held ").text
	found := holdReport.FindStringSubmatch(line)
	want := []string{trigger.String(), why, sent.String(), strconv.Itoa(code)}
	if found == nil || !slices.Equal([]string{found[1], found[3], found[4], found[5]}, want) {
		b.t.Errorf("reported %q, want %v", line, want)
		return
	}
	if seconds, _ := strconv.ParseFloat(found[2], 64); seconds < length.Seconds() {
		b.t.Errorf("held %v s, want %v", seconds, length)
	}
}
