package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Tests from the test suites of tini and dumb-init, as far as no other file has such a test.
// The inits themselves pass all tests here.

// onEachMode runs a test on each init, with each set of flags that changes how the init
// treats processes and signals.
func onEachMode(t *testing.T, test func(t *testing.T, init string, flags []string)) {
	for _, call := range []string{"tini -s --", "tini -s -g --", "dumb-init --", "dumb-init -c --", "catatonit --", "catatonit -g --"} {
		words := strings.Fields(call)
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, words[0], func(t *testing.T, init string) { test(t, init, words[1:]) })
		})
	}
}

// TestDropinExitStatus: the exit code of an init is that of its command, or 128 and the
// number of the signal that killed the command.
func TestDropinExitStatus(t *testing.T) {
	onEachMode(t, func(t *testing.T, init string, flags []string) {
		i := "$I " + strings.Join(flags, " ")
		codes := "0 1 2 32 64 126 127 128 254 255 "
		_, out := runCall(t, `for c in `+codes+`; do `+i+` sh -c "exit $c"; printf '%s ' $?; done`, init, "")
		if out != codes {
			t.Errorf("exit codes %s, want %s", out, codes)
		}
		const killed = "129 130 131 134 137 138 141 143 162 192 "
		_, out = runCall(t, `for s in 1 2 3 6 9 10 13 15 34 64; do `+i+` sh -c "kill -$s \$\$"; printf '%s ' $?; done`, init, "")
		if out != killed {
			t.Errorf("exit codes after signals %s, want %s", out, killed)
		}
	})
}

// TestDropinExitMap: tini -e maps each named exit code to 0, and no other code.
func TestDropinExitMap(t *testing.T) {
	onEachInit(t, "tini", func(t *testing.T, init string) {
		each := `for c in $(seq 0 255); do $I -s -e $c -- sh -c "exit $c" || echo $c; done`
		_, out := runCall(t, each, init, "")
		if out != "" {
			t.Errorf("not mapped to 0: %q", out)
		}
		others := `for c in $(seq 0 15 255); do $I -s $(seq -f '-e %.0f' 0 255 | grep -vx -- "-e $c") -- sh -c "exit $c"; [ $? = $c ] || echo $c; done`
		_, out = runCall(t, others, init, "")
		if out != "" {
			t.Errorf("changed without -e: %q", out)
		}
	})
}

// TestDropinReapsMany: a hundred orphans that exit within 250 ms leave no zombie.
func TestDropinReapsMany(t *testing.T) {
	family := `i=0; while [ $i -lt 100 ]; do ( sleep 0.$((i % 25 + 10)) & ); i=$((i+1)); done; exec "$@"`
	onEachMode(t, func(t *testing.T, init string, flags []string) {
		bootInit(t, init, nil, slices.Concat(flags, []string{"sh", "-c", family, "sh"}, helperCommand("zombies"))...).wantExit(0)
	})
}

// TestDropinSignaled: a signal that the command does not handle ends the command, and the
// init exits with 128 and the signal's number, as PID 1 and as another process.
func TestDropinSignaled(t *testing.T) {
	command := []string{"sh", "-c", "echo ready; exec sleep 1000"}
	onEachMode(t, func(t *testing.T, init string, flags []string) {
		words := slices.Concat(flags, command)
		for _, s := range []sig.Signal{sig.HUP, sig.INT, sig.QUIT, sig.USR1, sig.USR2, sig.PIPE, sig.TERM, 35, sig.RTMax} {
			for _, b := range []*box{bootInit(t, init, nil, words...), startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, append([]string{init}, words...)...)} {
				b.out.wait(t, "ready")
				b.signal(s)
				b.wantExit(128 + int(s))
			}
		}
	})
}

// TestDropinGroupWhereCommandIgnores: where the command ignores a signal to its group, the
// signal ends the command's child, and the command goes on to its own end.
func TestDropinGroupWhereCommandIgnores(t *testing.T) {
	for _, call := range []string{"tini -s -g --", "TINI_KILL_PROCESS_GROUP=1 tini -s --", "dumb-init --", "catatonit -g --"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			onEachInit(t, words[0], func(t *testing.T, init string) {
				script := `sleep 1000 & trap '' USR1; echo ready; wait $!; exit $(( $? == 138 ? 3 : 4 ))`
				b := startProgram(t, env, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, words[1:], []string{"sh", "-c", script})...)
				b.out.wait(t, "ready")
				b.signal(sig.USR1)
				b.wantExit(3)
			})
		})
	}
}

// TestDropinForwardsAsChild: an init other than PID 1 passes on signals in order.
func TestDropinForwardsAsChild(t *testing.T) {
	onEachMode(t, func(t *testing.T, init string, flags []string) {
		b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, flags, helperCommand("catch"))...)
		b.out.wait(t, "ready")
		want := []string{"ready"}
		for _, s := range []sig.Signal{sig.TERM, sig.QUIT, sig.CONT, sig.INT, sig.HUP, sig.USR2, sig.USR1, sig.WINCH, sig.PIPE, 14, 16, 23, 24, 25, 26, 29, 30, 64, 35} {
			b.signal(s)
			want = append(want, "got "+s.String())
			b.out.waitCount(t, len(want))
		}
		if got := fmt.Sprint(b.out.all()); got != fmt.Sprint(want) {
			t.Errorf("printed %v, want %v", got, want)
		}
		b.sendLine("exit 0")
		b.wantExit(0)
	})
}

// TestDropinSuspends: each terminal stop signal stops a dumb-init other than PID 1 and its
// command, and CONT continues both. With -c the command gets the signal; with a rewrite the
// command gets the other signal.
func TestDropinSuspends(t *testing.T) {
	stops := []sig.Signal{sig.TSTP, sig.TTIN, sig.TTOU}
	for flags, gets := range map[string][]string{
		"--": {"", "", ""}, "-c": {"got TSTP", "got TTIN", "got TTOU"}, "-r 20:1 -r 21:15 -r 22:2": {"got HUP", "got TERM", "got INT"},
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			onEachInit(t, "dumb-init", func(t *testing.T, init string) {
				b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, strings.Fields(flags), helperCommand("catch"))...)
				b.out.wait(t, "ready")
				command := onlyChild(t, b.cmd.Process.Pid)
				lines := 1
				for i, s := range stops {
					b.signal(s)
					awaitState(t, b.cmd.Process.Pid, "T")
					if gets[i] == "" {
						awaitState(t, command, "T")
					} else {
						b.out.wait(t, gets[i])
						lines++
					}
					b.signal(sig.CONT)
					lines++
					b.out.waitCount(t, lines)
					awaitState(t, b.cmd.Process.Pid, "S")
				}
				b.sendLine("exit 6")
				b.wantExit(6)
			})
		})
	}
}
