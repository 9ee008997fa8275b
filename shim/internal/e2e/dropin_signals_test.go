package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of the signals that reach the command under the names of inits.

// TestDropinForwards sends every signal that a Go program can catch to each init as PID 1.
// lameduck passes on all signals that the init passes on, and also the signals that some
// inits keep: fault signals sent by kill(2) (tini#104) and terminal stops (podman#18095).
func TestDropinForwards(t *testing.T) {
	catchable := sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, sig.CHLD, 27, 32, 33, 34))
	faults := sig.SetOf(4, 5, 6, 7, 8, 11, 31)
	stops := sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)
	for _, c := range []struct {
		name, flag string
		send, kept sig.Set
	}{
		{"tini", "-s", catchable, faults | sig.SetOf(sig.TTIN, sig.TTOU)},
		{"dumb-init", "--single-child", catchable, 0},
		{"dumb-init", "--", catchable.Without(stops), 0}, // see TestDropinStops
		{"catatonit", "--", catchable, faults | stops},
	} {
		onEachInit(t, c.name, func(t *testing.T, init string) {
			want := c.send
			if !isLameduck(init) {
				want = want.Without(c.kept)
			}
			b := bootCatch(t, init, c.flag)
			wanted := 1
			for s := range c.send.All {
				b.signal(s)
				if want.Has(s) {
					wanted++
					b.out.waitCount(t, wanted)
				}
			}
			b.sendLine("exit 0")
			b.wantExit(0)
			if got := receivedSignals(t, b); got != want {
				t.Errorf("missing %v, unexpected %v", slices.Collect(want.Without(got).All), slices.Collect(got.Without(want).All))
			}
		})
	}
}

// TestDropinInternalSignals: no init passes on 32 and 33: the C library uses both between the
// threads of a process, and each would end a program in C.
func TestDropinInternalSignals(t *testing.T) {
	for _, call := range [][]string{{"tini", "--"}, {"tini", "-g", "--"}, {"dumb-init", "--"}, {"dumb-init", "-c"}, {"catatonit", "--"}} {
		t.Run(strings.Join(call, " "), func(t *testing.T) {
			t.Parallel()
			onEachInit(t, call[0], func(t *testing.T, init string) {
				wantInternalDropped(t, bootInit(t, init, nil, append(call[1:], "sh", "-c", "echo ready; exec sleep 1000")...))
			})
		})
	}
}

// wantInternalDropped sends 32 and 33, and then RTMAX, which must be the signal that ends
// the command.
func wantInternalDropped(t *testing.T, b *box) {
	t.Helper()
	b.out.wait(t, "ready")
	for _, s := range []sig.Signal{32, 33, sig.RTMax} {
		b.signal(s)
	}
	b.wantExit(128 + int(sig.RTMax))
}

// receivedSignals returns the signals that the catch helper has printed.
func receivedSignals(t *testing.T, b *box) (set sig.Set) {
	t.Helper()
	for _, line := range b.out.all()[1:] {
		set = set.With(testutil.Must(sig.Parse(strings.TrimPrefix(line.text, "got "))))
	}
	return set
}

// TestDropinRewrites: signals sent to dumb-init with --rewrite, and the resulting signals at the
// command.
func TestDropinRewrites(t *testing.T) {
	for flags, steps := range map[string]string{
		"-r 15:3":               "TERM>QUIT INT>INT",
		"-r 15:2 -r 2:1":        "TERM>INT INT>HUP", // no chaining
		"-r 15:2 -r 2:15":       "TERM>INT INT>TERM",
		"-r 15:1 -r 15:3":       "TERM>QUIT", // the last rewrite wins
		"-r 15:0 -r 15:3":       "TERM>QUIT",
		"-r 15:15":              "TERM>TERM",
		"-r 1:31 -r 31:1":       "HUP>SYS SYS>HUP",
		"-r 15:0":               "TERM> TERM>",
		"-r 17:10":              "CHLD> CHLD>",
		"-r 20:10 -r 21:12":     "TSTP>USR1 TTIN>USR2",
		"-r 22:0":               "TTOU>",
		"-c -r 15:2":            "TERM>INT",
		"-c -r 20:10":           "TSTP>USR1 TTIN>TTIN TTOU>TTOU",
		"--single-child --":     "TERM>TERM TSTP>TSTP",
		"--rewrite=10:12 -r1:2": "USR1>USR2 HUP>INT",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				b := bootCatch(t, init, strings.Fields(flags)...)
				want := []string{"ready"}
				for _, step := range strings.Fields(steps) {
					from, to, _ := strings.Cut(step, ">")
					b.signal(testutil.Must(sig.Parse(from)))
					if to == "" { // nothing arrives for a dropped signal: RTMAX, sent later, arrives after all others
						b.signal(sig.RTMax)
						to = sig.RTMax.String()
					}
					want = append(want, "got "+to)
					b.out.waitCount(t, len(want))
				}
				if got := fmt.Sprint(b.out.all()); got != fmt.Sprint(want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		})
	}
}

// groupScript starts two processes, each of which prints a line at USR1. With the argument
// "wait" the first process waits for the second.
const groupScript = `trap 'echo first; [ "$0" = wait ] && wait; exit 5' USR1
( trap 'echo second; exit' USR1; echo ready; while :; do sleep 0.01; done ) & wait`

// TestDropinGroup: whether a signal goes to the command or to the command's process group.
func TestDropinGroup(t *testing.T) {
	for call, group := range map[string]bool{
		"tini": false, "tini -g": true, "TINI_KILL_PROCESS_GROUP= tini": true, "TINI_KILL_PROCESS_GROUP=0 tini": true,
		"dumb-init": true, "dumb-init -c": false, "DUMB_INIT_SETSID=0 dumb-init": false, "DUMB_INIT_SETSID=1 dumb-init": true,
		"catatonit": false, "catatonit -g": true,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			onEachInit(t, words[0], func(t *testing.T, init string) {
				last, want := "exit", []string{"first", "ready"}
				if group {
					last, want = "wait", []string{"first", "ready", "second"}
				}
				b := bootInit(t, init, env, append(words[1:], "--", "sh", "-c", groupScript, last)...)
				b.out.wait(t, "ready")
				b.signal(sig.USR1)
				b.wantExit(5)
				var got []string
				for _, line := range b.out.all() {
					got = append(got, line.text)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("printed %v, want %v", got, want)
				}
			})
		})
	}
}

// TestDropinStops: dumb-init sends STOP to the command's group for each terminal stop
// signal, because an orphaned process group ignores terminal stops. dumb-init as PID 1
// itself does not stop.
func TestDropinStops(t *testing.T) {
	onEachInit(t, "dumb-init", func(t *testing.T, init string) {
		b := bootCatch(t, init)
		command := onlyChild(t, b.cmd.Process.Pid)
		for i, s := range []sig.Signal{sig.TSTP, sig.TTIN, sig.TTOU} {
			b.signal(s)
			awaitState(t, command, "T")
			awaitState(t, b.cmd.Process.Pid, "S") // dumb-init's STOP to itself would take back a CONT
			b.signal(sig.CONT)
			b.out.waitCount(t, 2+i)
			awaitState(t, command, "S")
		}
		b.sendLine("exit 6")
		b.wantExit(6)
		if got := receivedSignals(t, b); got != sig.SetOf(sig.CONT) || len(b.out.all()) != 4 {
			t.Errorf("the command got %v", b.out.all())
		}
	})
}

// TestDropinStopsItself: a dumb-init other than PID 1 stops with its command, whatever the
// signal is rewritten to, and CONT continues both.
func TestDropinStopsItself(t *testing.T) {
	for flags, line := range map[string]string{"--": "", "-c": "got TSTP", "-r 20:10": "got USR1", "-r 20:0": ""} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), helperCommand("catch"))
				b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				command := onlyChild(t, b.cmd.Process.Pid)
				b.signal(sig.TSTP)
				awaitState(t, b.cmd.Process.Pid, "T")
				if line != "" {
					b.out.wait(t, line)
				}
				if flags == "--" {
					awaitState(t, command, "T")
				}
				b.signal(sig.CONT)
				b.out.wait(t, "got CONT")
				awaitState(t, b.cmd.Process.Pid, "S")
				b.sendLine("exit 6")
				b.wantExit(6)
			})
		})
	}
}

// onlyChild returns the pid of the only child of a process.
func onlyChild(t *testing.T, parent int) int {
	t.Helper()
	pids := children(parent)
	if len(pids) != 1 {
		t.Fatalf("process %d has the children %v, want one", parent, pids)
	}
	return pids[0]
}

// awaitState waits until the state of a process, as in proc_pid_status(5), is S (sleeping)
// or T (stopped).
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	testutil.Eventually(t, fmt.Sprintf("process %d in state %s", pid, state), func() bool {
		return strings.HasPrefix(status(pid, "State"), state)
	})
}

// leftoverScript leaves a process behind that prints the signal which ends the process.
// (A shell runs the trap of WINCH after the traps of all lower signals.)
const leftoverScript = `( trap 'echo got TERM; exit' TERM; trap 'echo got USR1; exit' USR1; trap 'echo got WINCH; exit' WINCH
echo ready; while :; do sleep 0.01; done ) & echo leftover $!; read x; exit 4`

// TestDropinTermGroup: when dumb-init's command has exited, the rest of the command's group
// gets TERM, rewritten like any TERM. WINCH, sent by the test, shows that no TERM came.
func TestDropinTermGroup(t *testing.T) {
	for flags, want := range map[string]string{
		"--": "got TERM", "-r 15:10": "got USR1", "-r 15:0": "got WINCH", "-c": "got WINCH", "-c -r 15:10": "got WINCH",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), []string{"sh", "-c", leftoverScript})
				b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				leftover, err := strconv.Atoi(strings.TrimPrefix(b.out.wait(t, "leftover ").text, "leftover "))
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Kill(leftover, unix.SIGKILL)
				b.sendLine("exit")
				if state, err := b.cmd.Process.Wait(); err != nil || state.ExitCode() != 4 {
					t.Errorf("%v, %v; want exit code 4", state, err)
				}
				unix.Kill(leftover, unix.SIGWINCH)
				<-b.out.eof
				if got := b.out.all(); len(got) < 3 || got[2].text != want {
					t.Errorf("printed %v, want %s as the third line", got, want)
				}
			})
		})
	}
}
