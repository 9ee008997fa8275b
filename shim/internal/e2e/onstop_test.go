package e2e

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of --on-stop and of --stop-schedule.

// factsScript prints what a shell has inherited.
const factsScript = `echo "dir $(pwd)"
echo "stdin $(readlink /proc/self/fd/0)"
echo "foreign" $(ls -l /proc/$$/fd | grep -cE '/dev/zero|socket|anon_inode|alive')
grep -E '^Sig(Ign|Blk)' /proc/$$/status | tr -d '\t'
echo "var $VAR"
`

// bootOnStop boots a command that catches signals, with a program for --on-stop. The hold
// lasts 19 s at most, unless flags say otherwise.
func bootOnStop(t *testing.T, onStop string, flags ...string) *box {
	t.Helper()
	t.Parallel()
	flags = append([]string{"--on-stop=" + onStop, "--grace-period=30"}, flags...)
	b := boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	return b
}

// wantHold sends TERM, and checks how long lameduck holds and the reason in the report.
func (b *box) wantHold(hold time.Duration, reason string) {
	b.t.Helper()
	start := time.Now()
	b.signal(sig.TERM)
	b.wantHoldSince(start, hold, reason)
}

// wantHoldSince checks that the command gets TERM when the given time has passed since
// start, at most 2 s later, and then ends the command and checks the reason in the report.
func (b *box) wantHoldSince(start time.Time, hold time.Duration, reason string) {
	b.t.Helper()
	b.wantHoldWithin(start, hold, hold+2*time.Second, reason)
}

// wantHoldWithin is wantHoldSince with another upper bound. A hold to the ceiling amid
// requests may end at a lull, in the last second or the last fifth of the ceiling.
func (b *box) wantHoldWithin(start time.Time, shortest, longest time.Duration, reason string) {
	b.t.Helper()
	if reason == "ceiling" {
		shortest -= min(time.Second, shortest/5)
	}
	got := b.out.wait(b.t, "got TERM").at.Sub(start)
	if got < shortest || got > longest {
		b.t.Errorf("the hold took %v, want %v to %v", got, shortest, longest)
	}
	b.sendLine("exit 7")
	b.wantExit(7)
	if report := b.report(); !strings.Contains(report, endOfHold(reason)) {
		b.t.Errorf("report: %s\nwant the reason %s", report, reason)
	}
}

// endOfHold returns the reason for the end of a hold as the text of the report has it.
func endOfHold(reason string) string {
	words := map[string]string{
		"second_signal": "second signal", "interrupt": "INT arrived", "no_listener": "nothing listens", "no_progress": "the server hangs",
		"udp": "UDP alone", "blind": "ceiling",
	}
	return "(" + cmp.Or(words[reason], reason)
}

// pastDedupWindow is a pause longer than the second in which the stop machine counts two
// signals as one trigger.
const pastDedupWindow = 1100 * time.Millisecond

// wantWarning checks that lameduck has warned exactly once, with text in the warning; with
// an empty text, that lameduck has not warned.
func (b *box) wantWarning(text string) {
	b.t.Helper()
	warnings := b.warnings()
	switch {
	case text == "" && len(warnings) > 0:
		b.t.Errorf("warnings: %q, want none", warnings)
	case text != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], text)):
		b.t.Errorf("warnings: %q, want one with %q", warnings, text)
	}
}

var isReport = regexp.MustCompile("^(TERM|held by|suggestion)[: ]")

// warnings returns lameduck's lines other than the line at the trigger and the report.
func (b *box) warnings() (list []string) {
	for _, line := range b.err.all() {
		if message, ok := line.message(); ok && !isReport.MatchString(message) {
			list = append(list, message)
		}
	}
	return list
}

// TestOnStopSees: --on-stop inherits what the command inherits, apart from standard input,
// the other descriptors, LAMEDUCK_PID and LAMEDUCK_SIGNAL. A relative path starts at
// lameduck's first working directory.
func TestOnStopSees(t *testing.T) {
	for name, stage := range map[string]string{"": "stage", "ignoring": "stage:ignore=USR2"} {
		for kind, program := range map[string]string{"path": "./on-stop", "PATH": "on-stop"} {
			port := strconv.Itoa(9940 + len(name) + len(program))
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				script := "#!/bin/sh\n" + factsScript + "echo \"env $LAMEDUCK_PID $LAMEDUCK_SIGNAL\"\nfor i; do echo \"[$i]\"; done\n"
				os.WriteFile(dir+"/on-stop", []byte(script), 0o755)
				b := newBox(t, stage, []string{"VAR=x y", "PATH=.:" + os.Getenv("PATH"), "LAMEDUCK_PID=1"},
					"--alive-file="+dir+"/alive", "--health=127.0.0.1:"+port, "--on-stop="+program+` 'a  b' "c'd" e\ f`, "--grace-period=30", "--", "sh", "-c", factsScript+`trap 'exit 7' TERM; echo ready $$; while :; do sleep 0.05; done`)
				b.cmd.Dir = dir
				b.cmd.ExtraFiles = []*os.File{testutil.Must(os.Open("/dev/zero"))}
				b.run()
				pid := strings.Fields(b.out.wait(t, "ready").text)[1]
				own := b.out.all()
				b.signal(sig.TERM)
				b.wantExit(7)
				onStop := b.out.all()[len(own):]
				want := fmt.Sprint(own[0], "|stdin /dev/null|foreign 0|", own[3], "|", own[4], "|", own[5], "|env ", pid, " TERM|[a  b]|[c'd]|[e f]")
				var got []string
				for _, line := range onStop {
					got = append(got, line.text)
				}
				if text := strings.Join(got, "|"); text != want {
					t.Errorf("--on-stop printed %s\nwant %s", text, want)
				}
				if own[0].text != "dir "+dir || own[2].text == "foreign 0" || name != "" && !strings.HasSuffix(own[4].text, "800") {
					t.Errorf("the command printed %v", own)
				}
				b.wantWarning("")
			})
		}
	}
}

// TestOnStopEnds: the hold lasts until --on-stop has ended, well or badly, and never longer
// than its ceiling.
func TestOnStopEnds(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o644)
	for name, c := range map[string]struct {
		onStop string
		hold   time.Duration
		reason string
		warns  string
	}{
		"well":           {"sleep 1", time.Second, "elapsed", ""},
		"badly":          {"sh -c 'exit 3'", 0, "elapsed", "--on-stop (LAMEDUCK_ON_STOP) exited 3"},
		"killed":         {"sh -c 'kill -TERM $$'", 0, "elapsed", "--on-stop (LAMEDUCK_ON_STOP) was killed by TERM"},
		"missing":        {"/no/such/program", 0, "elapsed", `--on-stop (LAMEDUCK_ON_STOP): cannot run "/no/such/program": no such file`},
		"not executable": {plain, 0, "elapsed", "permission denied"},
		"too late":       {"sleep 1000", 2 * time.Second, "ceiling", "--on-stop (LAMEDUCK_ON_STOP) still runs, and is killed"},
		"a daemon":       {"sh -c 'setsid sleep 1000 >/dev/null 2>&1 & exit 0'", 0, "elapsed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := bootOnStop(t, c.onStop, "--max-delay=2")
			b.wantHold(c.hold, c.reason)
			if name == "missing" || name == "not executable" { // a second warning, at the start
				b.wantStderr(c.warns)
				return
			}
			b.wantWarning(c.warns)
		})
	}
}

// TestOnStopKilled: an --on-stop that ignores signals is killed together with its children,
// at the ceiling of the hold or when lameduck exits earlier.
func TestOnStopKilled(t *testing.T) {
	stubborn := `sh -c 'trap "" TERM INT HUP; sleep 1000 & echo child $! self $$; while :; do wait; done'`
	for name, early := range map[string]bool{"ceiling": false, "command exits": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := []string{"--on-stop=" + stubborn, "--grace-period=30", "--max-delay=2", "--"}
			b := startProgram(t, nil, syscall.SysProcAttr{}, append(append([]string{binary}, flags...), helperCommand("catch")...)...) // not PID 1: the kernel kills no process when lameduck exits
			b.out.wait(t, "ready")
			start := time.Now()
			b.signal(sig.TERM)
			var pids [2]int
			fmt.Sscanf(b.out.wait(t, "child").text, "child %d self %d", &pids[0], &pids[1])
			if early {
				b.sendLine("exit 7")
				b.wantExit(7)
				if took := time.Since(start); took > 1900*time.Millisecond {
					t.Errorf("lameduck exited %v after TERM, want at once", took)
				}
			} else {
				b.wantHoldSince(start, 2*time.Second, "ceiling")
			}
			for _, pid := range pids {
				testutil.Eventually(t, fmt.Sprint(pid, " is dead"), func() bool { return hasEnded(pid) })
			}
			if stderr := fmt.Sprint(b.err.all()); strings.Count(stderr, "still runs, and is killed") != 1 {
				t.Errorf("stderr: %s\nwant one line about the kill", stderr)
			}
		})
	}
}

// TestOnStopSkipped: a second signal ends the hold while --on-stop runs.
func TestOnStopSkipped(t *testing.T) {
	for s, reason := range map[sig.Signal]string{sig.TERM: "second_signal", sig.INT: "interrupt"} {
		t.Run(reason, func(t *testing.T) {
			b := bootOnStop(t, "sh -c 'echo started; sleep 1000'")
			b.signal(sig.TERM)
			b.out.wait(t, "started")
			time.Sleep(pastDedupWindow)
			start := time.Now()
			b.signal(s)
			b.wantHoldSince(start, 0, reason)
		})
	}
}

// TestOnStopElsewhere: if lameduck's user may not enter the working directory, as in some
// containers, --on-stop runs in /.
func TestOnStopElsewhere(t *testing.T) {
	needs(t, "setpriv")
	if os.Getuid() != 0 {
		t.Skip("only root can change its uid")
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
		t.Errorf("--on-stop ran in %v, want /", out)
	}
}

// TestOnStopTells: --on-stop can signal the command, whose pid is in LAMEDUCK_PID.
func TestOnStopTells(t *testing.T) {
	b := bootOnStop(t, `sh -c 'kill -USR2 $LAMEDUCK_PID'`)
	b.wantHold(0, "elapsed")
	if got := fmt.Sprint(b.out.all()); got != "[ready got USR2 got TERM]" {
		t.Errorf("the command printed %s, want USR2 before TERM", got)
	}
	b.wantWarning("")
}

// TestOnStopFullPids: with the pids cgroup full, lameduck warns that --on-stop cannot run,
// and the stop is in time.
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
			b.wantStderr(`--on-stop (LAMEDUCK_ON_STOP): cannot run "sleep": resource temporarily unavailable`)
			if now := status(b.cmd.Process.Pid, "Threads"); now != "" && now != threads {
				t.Errorf("lameduck has %s threads after the stop, had %s", now, threads)
			}
		})
	}
}

// TestScheduleReal: a command that ignores signals gets the signals of --stop-schedule in
// time. A second TERM skips to the next step.
func TestScheduleReal(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		env    []string
		again  bool // send TERM twice
		want   string
		within time.Duration
	}{
		"its own time": {[]string{"--stop-schedule=USR1/1/TERM/1/KILL"}, nil, false, "sent USR1, TERM at +1.0 s, KILL at +2.0 s, killed by lameduck's KILL (137)", 2 * time.Second},
		"hurried":      {[]string{"--stop-schedule=USR1/8/TERM/1/KILL"}, nil, true, "sent USR1, TERM at +1.", 2 * time.Second},
		"kill after":   {[]string{"--kill-after=1"}, nil, false, "sent TERM, KILL at +1.0 s, killed by lameduck's KILL (137)", time.Second},
		"drop-in":      {nil, []string{"LAMEDUCK_STOP_SCHEDULE=USR1/1/KILL"}, false, "sent USR1, KILL at +1.0 s, killed by lameduck's KILL (137)", time.Second},
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
				time.Sleep(pastDedupWindow)
				b.signal(sig.TERM)
			}
			b.wantExit(137)
			if took := time.Since(start); took < c.within || took > c.within+2*time.Second {
				t.Errorf("the stop took %v, want %v", took, c.within)
			}
			b.wantStderr(c.want)
		})
	}
}

// TestToldAtStart: an --on-stop that cannot run and a --wait-gone without a directory are
// warnings at the start, not only at the stop.
func TestToldAtStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for flag, want := range map[string]string{
		"--on-stop=nowhere":           `lameduck: warning: --on-stop (LAMEDUCK_ON_STOP): cannot run "nowhere": no such file or directory: correct the command, or a stop goes on without it`,
		"--on-stop=" + dir:            fmt.Sprintf("lameduck: warning: --on-stop (LAMEDUCK_ON_STOP): cannot run %q: permission denied: correct the command, or a stop goes on without it", dir),
		"--wait-gone=" + dir + "/a/b": fmt.Sprintf("lameduck: warning: --wait-gone=%[1]s/a/b (LAMEDUCK_WAIT_GONE): there is no directory %[1]s/a, so no hold waits for the path: mount the neighbor's volume, or correct the path", dir),
		"--on-stop=true":              "",
		"--wait-gone=" + dir + "/a":   "",
	} {
		b := boot(t, nil, flag, "--grace-period=30", "--", "true")
		b.wantExit(0)
		var said []string
		for _, line := range b.err.all() {
			said = append(said, line.text)
		}
		if got := strings.Join(said, "\n"); got != want {
			t.Errorf("%s: said %q, want %q", flag, got, want)
		}
	}
}
