package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// What runs when the stop begins, end to end.

// facts is a shell's account of what it was given.
const factsScript = `echo "dir $(pwd)"
echo "stdin $(readlink /proc/self/fd/0)"
echo "strange" $(ls -l /proc/$$/fd | grep -cE '/dev/zero|socket|anon_inode|alive')
grep -E '^Sig(Ign|Blk)' /proc/$$/status | tr -d '\t'
echo "var $VAR"
`

// hooked is a box whose command catches signals, and which holds to 19 s at most,
// or else as flags say, while hook runs.
func bootOnStop(t *testing.T, hook string, flags ...string) *box {
	t.Helper()
	t.Parallel()
	flags = append([]string{"--on-stop=" + hook, "--grace-period=30"}, flags...)
	b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// wantHold wants TERM to reach the command so long after it reached lameduck, and the
// report to say why.
func (b *box) wantHold(at time.Duration, reason string) {
	b.t.Helper()
	start := time.Now()
	b.signal(sig.TERM)
	b.wantHoldSince(start, at, reason)
}

func (b *box) wantHoldSince(start time.Time, at time.Duration, reason string) {
	b.t.Helper()
	if got := b.out.wait(b.t, "got TERM").at.Sub(start); got < at || got > at+2*time.Second {
		b.t.Errorf("TERM after %v, want %v", got, at)
	}
	b.sendLine("exit 7")
	b.wantExit(7)
	if last := b.err.all(); !strings.Contains(fmt.Sprint(last), "("+reason+")") {
		b.t.Errorf("stderr: %v, want %s", last, reason)
	}
}

// wantWarning wants exactly one warning, with text in it, or none.
func (b *box) wantWarning(text string) {
	b.t.Helper()
	var found []string
	for _, line := range b.err.all() {
		if strings.Contains(line.text, "warning") {
			found = append(found, line.text)
		}
	}
	if text == "" && len(found) > 0 || text != "" && (len(found) != 1 || !strings.Contains(found[0], text)) {
		b.t.Errorf("warnings: %q, want %q", found, text)
	}
}

// TestOnStopSees: it is given what the command is, apart from the terminal, the
// descriptors and two variables; it is found by its path from where lameduck was
// started.
func TestOnStopSees(t *testing.T) {
	for name, stage := range map[string]string{"": "stage", "ignoring": "stage:ignore=USR2"} {
		for kind, program := range map[string]string{"path": "./hook", "PATH": "hook"} {
			port := strconv.Itoa(9940 + len(name) + len(program))
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				script := "#!/bin/sh\n" + factsScript + "echo \"told $LAMEDUCK_PID $LAMEDUCK_SIGNAL\"\nfor i; do echo \"[$i]\"; done\n"
				os.WriteFile(dir+"/hook", []byte(script), 0o755)
				b := newBox(t, stage, []string{"VAR=x y", "PATH=.:" + os.Getenv("PATH"), "LAMEDUCK_PID=1"},
					"--alive-file="+dir+"/alive", "--health=127.0.0.1:"+port, "--on-stop="+program+` 'a  b' "c'd" e\ f`, "--grace-period=30", "--", "sh", "-c", factsScript+`trap 'exit 7' TERM; echo ready $$; while :; do sleep 0.05; done`)
				b.cmd.Dir = dir
				b.cmd.ExtraFiles = []*os.File{testutil.Must(os.Open("/dev/zero"))}
				b.run()
				pid := strings.Fields(b.out.wait(t, "ready").text)[1]
				own := b.out.all()
				b.signal(sig.TERM)
				b.wantExit(7)
				theirs := b.out.all()[len(own):]
				want := fmt.Sprint(own[0], "|stdin /dev/null|strange 0|", own[3], "|", own[4], "|", own[5], "|told ", pid, " TERM|[a  b]|[c'd]|[e f]")
				var got []string
				for _, line := range theirs {
					got = append(got, line.text)
				}
				if text := strings.Join(got, "|"); text != want {
					t.Errorf("it sees %s\n   want %s", text, want)
				}
				if own[0].text != "dir "+dir || own[2].text == "strange 0" || name != "" && !strings.HasSuffix(own[4].text, "800") {
					t.Errorf("the command sees %v", own)
				}
				b.wantWarning("")
			})
		}
	}
}

// TestOnStopEnds: the hold lasts until it has ended, however it does, and no longer
// than it may.
func TestOnStopEnds(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644)
	for name, c := range map[string]struct {
		hook   string
		hold   time.Duration
		reason string
		warns  string
	}{
		"well":           {"sleep 1", time.Second, "elapsed", ""},
		"badly":          {"sh -c 'exit 3'", 0, "elapsed", "--on-stop exited 3"},
		"killed":         {"sh -c 'kill -TERM $$'", 0, "elapsed", "--on-stop was killed by TERM"},
		"missing":        {"/no/such/program", 0, "elapsed", `--on-stop: cannot run "/no/such/program": no such file`},
		"not executable": {plain, 0, "elapsed", "permission denied"},
		"too late":       {"sleep 1000", 2 * time.Second, "ceiling", "--on-stop still runs, and is killed"},
		"a daemon":       {"sh -c 'setsid sleep 1000 >/dev/null 2>&1 & exit 0'", 0, "elapsed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := bootOnStop(t, c.hook, "--max-delay=2")
			b.wantHold(c.hold, c.reason)
			if c.reason == "ceiling" { // and its end by our KILL is said too
				if stderr := fmt.Sprint(b.err.all()); !strings.Contains(stderr, c.warns) {
					t.Errorf("stderr: %s", stderr)
				}
				return
			}
			b.wantWarning(c.warns)
		})
	}
}

// TestOnStopKilled: one that ignores what it can is killed with what it has started,
// when the hold may last no longer; and when lameduck leaves before.
func TestOnStopKilled(t *testing.T) {
	stubborn := `sh -c 'trap "" TERM INT HUP; sleep 1000 & echo child $! self $$; while :; do wait; done'`
	for name, early := range map[string]bool{"ceiling": false, "command exits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--on-stop=" + stubborn, "--grace-period=30", "--max-delay=2", "--"}
			b := startProgram(t, nil, syscall.SysProcAttr{}, append(append([]string{binary}, flags...), helperCommand("catch")...)...) // not PID 1: nobody else kills it
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			var pids [2]int
			fmt.Sscanf(b.out.wait(t, "child").text, "child %d self %d", &pids[0], &pids[1])
			if early {
				b.sendLine("exit 7")
				b.wantExit(7)
				if took := time.Since(start); took > 1900*time.Millisecond {
					t.Errorf("the stop took %v", took)
				}
			} else {
				b.wantHoldSince(start, 2*time.Second, "ceiling")
			}
			for _, pid := range pids {
				testutil.Eventually(t, fmt.Sprint(pid, " is dead"), func() bool { return hasEnded(pid) })
			}
			if stderr := fmt.Sprint(b.err.all()); strings.Count(stderr, "still runs, and is killed") != 1 {
				t.Errorf("stderr: %s", stderr)
			}
		})
	}
}

// TestOnStopSkipped: a second signal ends the hold, and lets it run on.
func TestOnStopSkipped(t *testing.T) {
	for s, reason := range map[sig.Signal]string{sig.TERM: "second_signal", sig.INT: "interrupt"} {
		t.Run(reason, func(t *testing.T) {
			b := bootOnStop(t, "sh -c 'echo hook; sleep 1000'")
			b.signal(sig.TERM)
			b.out.wait(t, "hook")
			time.Sleep(1100 * time.Millisecond) // or it would be the same
			start := time.Now()
			b.signal(s)
			b.wantHoldSince(start, 0, reason)
		})
	}
}

// TestOnStopElsewhere: lameduck may be in a directory that its user may not enter, as a
// container's working directory is; --on-stop then runs in /.
func TestOnStopElsewhere(t *testing.T) {
	needs(t, "setpriv")
	if os.Getuid() != 0 {
		t.Skip("needs root, for another user")
	}
	t.Parallel()
	b := newProgram(t, nil, syscall.SysProcAttr{}, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary,
		"--delay=0.2", "--grace-period=30", "--on-stop=sh -c pwd", "--", "sh", "-c", "kill $PPID; exec sleep 9")
	b.cmd.Dir = t.TempDir()
	if err := os.Chmod(b.cmd.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.wantExit(143)
	b.wantWarning("")
	if out := b.out.all(); len(out) != 1 || out[0].text != "/" {
		t.Errorf("it runs in %v", out)
	}
}

// TestOnStopTells: it may tell the command, whose pid it knows.
func TestOnStopTells(t *testing.T) {
	b := bootOnStop(t, `sh -c 'kill -USR2 $LAMEDUCK_PID'`)
	b.wantHold(0, "elapsed")
	if got := fmt.Sprint(b.out.all()); got != "[ready got USR2 got TERM]" {
		t.Errorf("the command stderr %s", got)
	}
	b.wantWarning("")
}

// TestOnStopFullPids: where no process can be had it is left out, and the stop goes
// on in time.
func TestOnStopFullPids(t *testing.T) {
	for round := range 4 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			t.Parallel()
			group := newCgroup(t, "pids")
			b := bootStage(t, "stage:cgroup="+string(group), nil, append([]string{"-d", "1", "--on-stop=sleep 100", "--health=127.0.0.1:" + strconv.Itoa(9950+round), "--"}, helperCommand("sturdy")...)...)
			b.out.wait(t, "ready")
			threads := status(b.cmd.Process.Pid, "Threads")
			group.set(t, "pids.max", group.get(t, "pids.current")+20)
			b.sendLine("fill")
			b.out.wait(t, "full")
			b.wantStop()
			if stderr := fmt.Sprint(b.err.all()); !strings.Contains(stderr, `--on-stop: cannot run "sleep": resource temporarily unavailable`) {
				t.Errorf("stderr: %s", stderr)
			}
			if now := status(b.cmd.Process.Pid, "Threads"); now != "" && now != threads {
				t.Errorf("%s threads, later %s", threads, now)
			}
		})
	}
}

// TestScheduleReal: a command that ignores all it can is led through a schedule; a
// second TERM moves on.
func TestScheduleReal(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		env    []string
		again  bool // TERM is sent again
		want   string
		within time.Duration
	}{
		"its own time": {[]string{"--stop-schedule=USR1/1/TERM/1/KILL"}, nil, false, "sent USR1 at +0.0 s, TERM at +1.0 s, KILL at +2.0 s; the command was killed by lameduck's KILL (137)", 2 * time.Second},
		"hurried":      {[]string{"--stop-schedule=USR1/8/TERM/1/KILL"}, nil, true, "sent USR1 at +0.0 s, TERM at +1.", 2 * time.Second},
		"kill after":   {[]string{"--kill-after=1"}, nil, false, "sent TERM at +0.0 s, KILL at +1.0 s; the command was killed by lameduck's KILL (137)", time.Second},
		"drop-in":      {nil, []string{"LAMEDUCK_STOP_SCHEDULE=USR1/1/KILL"}, false, "sent USR1 at +0.0 s, KILL at +1.0 s; the command was killed by lameduck's KILL (137)", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "stage", c.env, append(append(c.flags, "--"), "sh", "-c", `trap "" TERM USR1 INT HUP QUIT; echo ready; while :; do sleep 0.1; done`)...)
			if c.env != nil {
				tini := filepath.Join(t.TempDir(), "tini")
				os.Symlink(binary, tini)
				b.cmd.Args[3] = tini
			}
			b.run()
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			if c.again {
				time.Sleep(1100 * time.Millisecond)
				b.signal(sig.TERM)
			}
			b.wantExit(137)
			if took := time.Since(start); took < c.within || took > c.within+2*time.Second {
				t.Errorf("the stop took %v", took)
			}
			if stderr := fmt.Sprint(b.err.all()); !strings.Contains(stderr, c.want) {
				t.Errorf("stderr: %s, want %s", stderr, c.want)
			}
		})
	}
}
