package e2e

import (
	"fmt"
	"os"
	"path/filepath"
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

// What becomes of signals under the inits.

// TestDropinForwards sends every signal that our command, a Go program, can see
// through every init as PID 1. All that an init passes on lameduck does too; it
// also passes what some of them keep: faults that somebody sent (tini#104) and
// terminal stops (podman#18095).
func TestDropinForwards(t *testing.T) {
	seen := sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, sig.CHLD, 27, 32, 33, 34))
	faults := sig.SetOf(4, 5, 6, 7, 8, 11, 31)
	stops := sig.SetOf(sig.TSTP, sig.TTIN, sig.TTOU)
	for _, c := range []struct {
		name, flag string
		send, kept sig.Set
	}{
		{"tini", "-s", seen, faults | sig.SetOf(sig.TTIN, sig.TTOU)},
		{"dumb-init", "--single-child", seen, 0},
		{"dumb-init", "--", seen.Without(stops), 0}, // see TestDropinStops
		{"catatonit", "--", seen, faults | stops},
	} {
		eachInit(t, c.name, func(t *testing.T, init string) {
			want := c.send
			if !isOurs(init) {
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
			if got := received(t, b); got != want {
				t.Errorf("lost %v, too many %v", slices.Collect(want.Without(got).All), slices.Collect(got.Without(want).All))
			}
		})
	}
}

// TestDropinInternalSignals: 32 and 33 belong to the threads of one process, and would
// end a program in C. No init passes them on.
func TestDropinInternalSignals(t *testing.T) {
	for _, call := range [][]string{{"tini", "--"}, {"tini", "-g", "--"}, {"dumb-init", "--"}, {"dumb-init", "-c"}, {"catatonit", "--"}} {
		t.Run(strings.Join(call, " "), func(t *testing.T) {
			t.Parallel()
			eachInit(t, call[0], func(t *testing.T, init string) {
				dropsInternal(t, bootInit(t, init, nil, append(call[1:], "sh", "-c", "echo ready; exec sleep 1000")...))
			})
		})
	}
}

// dropsInternal sends 32 and 33, and a signal that is passed on after them.
func dropsInternal(t *testing.T, b *box) {
	t.Helper()
	b.out.wait(t, "ready")
	for _, s := range []sig.Signal{32, 33, sig.RTMax} {
		b.signal(s)
	}
	b.wantExit(128 + int(sig.RTMax))
}

// received is what the command has caught.
func received(t *testing.T, b *box) (set sig.Set) {
	t.Helper()
	for _, line := range b.out.all()[1:] {
		set = set.With(testutil.Must(sig.Parse(strings.TrimPrefix(line.text, "got "))))
	}
	return set
}

// TestDropinRewrites: what arrives at dumb-init, and what the command gets for
// it.
func TestDropinRewrites(t *testing.T) {
	for flags, steps := range map[string]string{
		"-r 15:3":               "TERM>QUIT INT>INT",
		"-r 15:2 -r 2:1":        "TERM>INT INT>HUP", // no chaining
		"-r 15:2 -r 2:15":       "TERM>INT INT>TERM",
		"-r 15:1 -r 15:3":       "TERM>QUIT", // the last one wins
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
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				b := bootCatch(t, init, strings.Fields(flags)...)
				want := []string{"ready"}
				for _, step := range strings.Fields(steps) {
					from, to, _ := strings.Cut(step, ">")
					b.signal(testutil.Must(sig.Parse(from)))
					if to == "" { // the last of all signals shows that this one is through
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

// groupScript has two processes that both say when USR1 comes. The first waits
// for the second if it is to.
const groupScript = `trap 'echo first; [ "$0" = wait ] && wait; exit 5' USR1
( trap 'echo second; exit' USR1; echo ready; while :; do sleep 0.01; done ) & wait`

// TestDropinGroup: who gets a signal, the command or its whole group.
func TestDropinGroup(t *testing.T) {
	for call, group := range map[string]bool{
		"tini": false, "tini -g": true, "TINI_KILL_PROCESS_GROUP= tini": true, "TINI_KILL_PROCESS_GROUP=0 tini": true,
		"dumb-init": true, "dumb-init -c": false, "DUMB_INIT_SETSID=0 dumb-init": false, "DUMB_INIT_SETSID=1 dumb-init": true,
		"catatonit": false, "catatonit -g": true,
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(call)
			var env []string
			if strings.Contains(words[0], "=") {
				env, words = words[:1], words[1:]
			}
			eachInit(t, words[0], func(t *testing.T, init string) {
				last, want := "leave", []string{"first", "ready"}
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
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		})
	}
}

// TestDropinStops: to dumb-init's group terminal stops go as STOP, since a group
// without a parent in its session would not obey them. As PID 1 it runs on.
func TestDropinStops(t *testing.T) {
	eachInit(t, "dumb-init", func(t *testing.T, init string) {
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
		if got := received(t, b); got != sig.SetOf(sig.CONT) || len(b.out.all()) != 4 {
			t.Errorf("the command got %v", b.out.all())
		}
	})
}

// TestDropinStopsItself: where dumb-init is not PID 1 it stops with its command,
// whatever becomes of the signal, and CONT wakes both.
func TestDropinStopsItself(t *testing.T) {
	for flags, says := range map[string]string{"--": "", "-c": "got TSTP", "-r 20:10": "got USR1", "-r 20:0": ""} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), helperCommand("catch"))
				b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				command := onlyChild(t, b.cmd.Process.Pid)
				b.signal(sig.TSTP)
				awaitState(t, b.cmd.Process.Pid, "T")
				if says != "" {
					b.out.wait(t, says)
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

// onlyChild is the pid of a process's child.
func onlyChild(t *testing.T, parent int) int {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if fields := stat(pid); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return pid
		}
	}
	t.Fatalf("%d has no child", parent)
	return 0
}

// stat are the fields of proc_pid_stat(5) from the third, the state.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// awaitState waits until a process is in a state: S waits, T is stopped.
func awaitState(t *testing.T, pid int, state string) {
	t.Helper()
	for end := time.Now().Add(testutil.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if fields := stat(pid); len(fields) > 0 && fields[0] == state {
			return
		}
	}
	t.Fatalf("process %d: %v; want state %s", pid, stat(pid), state)
}

// farewellScript leaves a process behind that says when it is told to end. (WINCH
// comes after all others that a shell has pending.)
const farewellScript = `( trap 'echo told TERM; exit' TERM; trap 'echo told USR1; exit' USR1; trap 'echo asked; exit' WINCH
echo ready; while :; do sleep 0.01; done ) & echo left $!; read x; exit 4`

// TestDropinFarewell: when dumb-init's command has exited, what is left of its
// group is sent TERM, which is rewritten like any other.
func TestDropinFarewell(t *testing.T) {
	for flags, told := range map[string]string{
		"--": "told TERM", "-r 15:10": "told USR1", "-r 15:0": "asked", "-c": "asked", "-c -r 15:10": "asked",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
				words := slices.Concat([]string{init}, strings.Fields(flags), []string{"sh", "-c", farewellScript})
				b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, words...)
				b.out.wait(t, "ready")
				left, err := strconv.Atoi(strings.TrimPrefix(b.out.wait(t, "left ").text, "left "))
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Kill(left, unix.SIGKILL)
				b.sendLine("leave")
				if state, err := b.cmd.Process.Wait(); err != nil || state.ExitCode() != 4 {
					t.Errorf("%v, %v; want 4", state, err)
				}
				unix.Kill(left, unix.SIGWINCH)
				<-b.out.eof
				if got := b.out.all(); len(got) < 3 || got[2].text != told {
					t.Errorf("%v, want %s", got, told)
				}
			})
		})
	}
}
