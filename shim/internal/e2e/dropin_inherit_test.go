package e2e

import (
	"fmt"
	"os"
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
)

// Tests of the inherited signals, process groups and sessions under the names of inits.

// TestDropinInheritsSignals: the commands of tini and catatonit start with the blocked and
// ignored signals of the init. dumb-init resets all of them but ignored real-time signals.
func TestDropinInheritsSignals(t *testing.T) {
	needs(t, "bash")
	stops := sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)
	given := []struct{ blocked, ignored sig.Set }{
		{0, 0},
		{sig.SetOf(sig.TERM, sig.USR1, 37), 0},
		{0, sig.SetOf(sig.HUP, sig.INT)},
		{sig.SetOf(sig.TTIN, 4, sig.TERM, sig.CHLD), sig.SetOf(sig.TTOU, 11, sig.INT, sig.PIPE, sig.URG, 40)}, // tini's own test, and more
	}
	for name, want := range map[string]func(blocked, ignored sig.Set) (sig.Set, sig.Set){
		"tini":      func(blocked, ignored sig.Set) (sig.Set, sig.Set) { return blocked, ignored },
		"catatonit": func(blocked, ignored sig.Set) (sig.Set, sig.Set) { return blocked, ignored },
		"dumb-init": func(_, ignored sig.Set) (sig.Set, sig.Set) { return 0, ignored.Without(sig.Standard) },
	} {
		onEachInit(t, name, func(t *testing.T, init string) {
			for _, c := range given {
				blocked, ignored := want(c.blocked, c.ignored)
				if name == "catatonit" && !isLameduck(init) {
					blocked |= stops // a bug: the command never gets the stop signals
				}
				if gotBlocked, gotIgnored := inheritedSignals(t, init, c.blocked, c.ignored); gotBlocked != blocked || gotIgnored != ignored {
					t.Errorf("given %x and %x, the command has %x and %x; want %x and %x", c.blocked, c.ignored, gotBlocked, gotIgnored, blocked, ignored)
				}
			}
		})
	}
}

// inheritedSignals starts an init with signals blocked and ignored, by lameduck's second
// stage, and returns the blocked and ignored signals of the init's command.
func inheritedSignals(t *testing.T, init string, blocked, ignored sig.Set) (gotBlocked, gotIgnored sig.Set) {
	t.Helper()
	stage := fmt.Sprintf(`exec -a lameduck-stage %s 99 0 %x %x "$@"`, binary, uint64(blocked), uint64(ignored))
	text := commandOutput(t, nil, "bash", "-c", stage, "bash", init, "--", "cat", "/proc/self/status")
	set := func(name string) sig.Set {
		return parseSignalSet(t, regexp.MustCompile("(?m)^"+name+":.*$").FindString(text)).Without(sig.SetOf(32, 33))
	}
	return set("SigBlk"), set("SigIgn")
}

// TestDropinGroups: whether the command has a process group and a session of its own, or
// shares the group and session of the init.
func TestDropinGroups(t *testing.T) {
	for call, want := range map[string]string{
		"tini --": "own group", "catatonit --": "own group", "dumb-init --": "own group, own session",
		"dumb-init -c": "", "DUMB_INIT_SETSID=0 dumb-init": "",
	} {
		t.Run(call, func(t *testing.T) {
			env, words := splitEnv(call)
			onEachInit(t, words[0], func(t *testing.T, init string) {
				script := `cat /proc/$$/stat /proc/$PPID/stat`
				b := startProgram(t, env, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, words[1:], []string{"sh", "-c", script})...)
				b.wantExit(0)
				command, parent := strings.Fields(b.out.all()[0].text), strings.Fields(b.out.all()[1].text)
				var got []string
				if command[4] != parent[4] {
					got = append(got, "own group")
				}
				if command[5] != parent[5] {
					got = append(got, "own session")
				}
				if strings.Join(got, ", ") != want {
					t.Errorf("the command has %q, want %q", got, want)
				}
			})
		})
	}
}

// splitEnv splits a call such as "NAME=value tini -s" into variables and words.
func splitEnv(call string) (env, words []string) {
	words = strings.Fields(call)
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	return env, words
}

// TestDropinDiesWithGroup: a KILL to the process group of dumb-init -c, as from timeout(1),
// kills the command too.
func TestDropinDiesWithGroup(t *testing.T) {
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		b := startProgram(t, nil, syscall.SysProcAttr{Setpgid: true}, init, "-c", "sh", "-c", "echo $$; exec sleep 1000")
		command, err := strconv.Atoi(b.out.wait(t, "").text)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(-b.cmd.Process.Pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.out.eof: // the command had the pipe open
		case <-time.After(testutil.Patience):
			t.Error("the command still runs")
			unix.Kill(command, unix.SIGKILL)
		}
		b.waitExit()
	})
}

// TestDropinGroupOfShell: under a shell with job control, dumb-init -c and its command are
// one foreground job. Ctrl-Z stops both, and fg continues both.
func TestDropinGroupOfShell(t *testing.T) {
	needs(t, "bash")
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		s := startOnTerminal(t, false, "env", "INIT="+init, "bash", "--norc", "--noprofile", "-i")
		s.waitFor("$ ")
		s.typeText("$INIT -c sleep 1000\n")
		awaitForeground(t, s, "dumb-init")
		for range 2 {
			s.typeText(ctrlZ)
			s.waitFor("Stopped")
			s.typeText("fg\n")
			awaitForeground(t, s, "dumb-init")
		}
		s.typeText(ctrlC)
		s.waitFor("$ ")
		s.typeText("echo code $?\n")
		s.waitFor("code 130")
		s.typeText("exit 0\n")
		s.wantExit(0)
	})
}

// TestDropinNoSubreaper: a dumb-init other than PID 1 adopts no orphan, except lameduck with
// LAMEDUCK_SUBREAPER.
func TestDropinNoSubreaper(t *testing.T) {
	for call, takes := range map[string]bool{"dumb-init": false, "dumb-init -c": false, "LAMEDUCK_SUBREAPER=true dumb-init": true} {
		// t.TempDir puts the name into the path of the init, and env(1) takes a path with "=" as a variable.
		t.Run(strings.ReplaceAll(call, "=", " "), func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			onEachInit(t, words[0], func(t *testing.T, init string) {
				if takes && !isLameduck(init) {
					t.Skip("the init has no such variable")
				}
				parent, adopter := adoption(t, nil, slices.Concat([]string{"env"}, env, []string{init}, words[1:])...)
				want := "1"
				if takes {
					want = parent
				}
				if adopter != want {
					t.Errorf("the orphan's parent is %s, want %s; the init is %s", adopter, want, parent)
				}
			})
		})
	}
}

// adoption runs an init, other than PID 1, whose command leaves an orphan behind. It
// returns the pids of the init and of the orphan's new parent.
func adoption(t *testing.T, env []string, init ...string) (pid, adopter string) {
	t.Helper()
	family := `echo "init $PPID"; ( "$@" & ); read end`
	b := boot(t, env, slices.Concat(init, []string{"--", "sh", "-c", family, "sh"}, helperCommand("orphan"))...)
	pid = strings.TrimPrefix(b.out.wait(t, "init ").text, "init ")
	adopter = strings.TrimPrefix(b.out.wait(t, "orphan ").text, "orphan ")
	b.sendLine("end")
	b.wantExit(0)
	return pid, adopter
}

// TestDropinDirectories: the command starts in the directory of the init's start. dumb-init
// itself changes to /, and so does lameduck.
func TestDropinDirectories(t *testing.T) {
	dir := testutil.Must(os.MkdirTemp(t.TempDir(), "here"))
	for _, name := range []string{"tini", "dumb-init", "catatonit"} {
		onEachInit(t, name, func(t *testing.T, init string) {
			b := newProgram(t, nil, syscall.SysProcAttr{}, init, "--", "sh", "-c", `pwd; echo $PPID; read end`)
			b.cmd.Dir = dir
			b.run()
			if got := b.out.wait(t, "/").text; got != dir {
				t.Errorf("the command is in %s, want %s", got, dir)
			}
			b.out.waitCount(t, 2)
			parent, err := strconv.Atoi(b.out.all()[1].text)
			if err != nil {
				t.Fatal(err)
			}
			want := "/"
			if name != "dumb-init" && !isLameduck(init) {
				want = dir
			}
			testutil.Eventually(t, "the init sits in "+want, func() bool {
				cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", parent))
				return cwd == want
			})
			b.sendLine("end")
			b.wantExit(0)
		})
	}
}
