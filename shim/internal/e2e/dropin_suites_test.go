package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// What tini's and dumb-init's own suites test, and no other test of the drop-in names
// does. What is expected here their own programs do.

// eachMode runs a test on each init, and with the flags that change what it does with
// processes and signals.
func eachMode(t *testing.T, test func(t *testing.T, init string, flags []string)) {
	for _, call := range []string{"tini -s --", "tini -s -g --", "dumb-init --", "dumb-init -c --", "catatonit --", "catatonit -g --"} {
		words := strings.Fields(call)
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			eachInit(t, words[0], func(t *testing.T, init string) { test(t, init, words[1:]) })
		})
	}
}

// TestDropinExitStatus: an init leaves with the code of its command, or 128 and the
// signal that killed it.
func TestDropinExitStatus(t *testing.T) {
	eachMode(t, func(t *testing.T, init string, flags []string) {
		i := "$I " + strings.Join(flags, " ")
		codes := "0 1 2 32 64 126 127 128 254 255 "
		if _, out := callShape(t, `for c in `+codes+`; do `+i+` sh -c "exit $c"; printf '%s ' $?; done`, init, ""); out != codes {
			t.Errorf("codes %s, want %s", out, codes)
		}
		if _, out := callShape(t, `for s in 1 2 3 6 9 10 13 15 34 64; do `+i+` sh -c "kill -$s \$\$"; printf '%s ' $?; done`, init, ""); out != "129 130 131 134 137 138 141 143 162 192 " {
			t.Errorf("codes of signals %s", out)
		}
	})
}

// TestDropinExitMap: tini -e reports every code as 0 that it names, and no other.
func TestDropinExitMap(t *testing.T) {
	eachInit(t, "tini", func(t *testing.T, init string) {
		each := `for c in $(seq 0 255); do $I -s -e $c -- sh -c "exit $c" || echo $c; done`
		if _, out := callShape(t, each, init, ""); out != "" {
			t.Errorf("not mapped: %q", out)
		}
		others := `for c in $(seq 0 15 255); do $I -s $(seq -f '-e %.0f' 0 255 | grep -vx -- "-e $c") -- sh -c "exit $c"; [ $? = $c ] || echo $c; done`
		if _, out := callShape(t, others, init, ""); out != "" {
			t.Errorf("mapped too: %q", out)
		}
	})
}

// TestDropinReapsMany: a hundred orphans that end within a quarter of a second leave no
// zombie.
func TestDropinReapsMany(t *testing.T) {
	family := `i=0; while [ $i -lt 100 ]; do ( sleep 0.$((i % 25 + 10)) & ); i=$((i+1)); done; exec "$@"`
	eachMode(t, func(t *testing.T, init string, flags []string) {
		bootInit(t, init, nil, slices.Concat(flags, []string{"sh", "-c", family, "sh"}, helperCommand("zombies"))...).wantExit(0)
	})
}

// TestDropinSignalled: a signal that the command does not handle ends it, and so the
// init with 128 and its number, as PID 1 and otherwise.
func TestDropinSignalled(t *testing.T) {
	command := []string{"sh", "-c", "echo ready; exec sleep 1000"}
	eachMode(t, func(t *testing.T, init string, flags []string) {
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

// TestDropinGroupWhereCommandIgnores: a signal to the group ends the child of a command
// that ignores it, and then the command.
func TestDropinGroupWhereCommandIgnores(t *testing.T) {
	for _, call := range []string{"tini -s -g --", "TINI_KILL_PROCESS_GROUP=1 tini -s --", "dumb-init --", "catatonit -g --"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			env, words := splitEnv(call)
			eachInit(t, words[0], func(t *testing.T, init string) {
				script := `sleep 1000 & trap '' USR1; echo ready; wait $!; exit $(( $? == 138 ? 3 : 4 ))`
				b := startProgram(t, env, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, words[1:], []string{"sh", "-c", script})...)
				b.out.wait(t, "ready")
				b.signal(sig.USR1)
				b.wantExit(3)
			})
		})
	}
}

// TestDropinForwardsAsChild: an init that is not PID 1 passes on what comes, in order.
func TestDropinForwardsAsChild(t *testing.T) {
	eachMode(t, func(t *testing.T, init string, flags []string) {
		b := startProgram(t, nil, syscall.SysProcAttr{Setsid: true}, slices.Concat([]string{init}, flags, helperCommand("catch"))...)
		b.out.wait(t, "ready")
		want := []string{"ready"}
		for _, s := range []sig.Signal{sig.TERM, sig.QUIT, sig.CONT, sig.INT, sig.HUP, sig.USR2, sig.USR1, sig.WINCH, sig.PIPE, 14, 16, 23, 24, 25, 26, 29, 30, 64, 35} {
			b.signal(s)
			want = append(want, "got "+s.String())
			b.out.waitCount(t, len(want))
		}
		if got := fmt.Sprint(b.out.all()); got != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		b.sendLine("exit 0")
		b.wantExit(0)
	})
}

// TestDropinSuspends: each of the terminal's stop signals stops dumb-init, which is not
// PID 1, and its command, and CONT wakes both. With -c the command gets the signal
// itself, and where it is rewritten the command gets another.
func TestDropinSuspends(t *testing.T) {
	stops := []sig.Signal{sig.TSTP, sig.TTIN, sig.TTOU}
	for flags, gets := range map[string][]string{
		"--": {"", "", ""}, "-c": {"got TSTP", "got TTIN", "got TTOU"}, "-r 20:1 -r 21:15 -r 22:2": {"got HUP", "got TERM", "got INT"},
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			eachInit(t, "dumb-init", func(t *testing.T, init string) {
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
