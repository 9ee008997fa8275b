package e2e

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// Tests of a stop with a hold while something fails, with the built lameduck as PID 1.

// soakTime is the length of TestSoak, 30s or more before a release.
var soakTime = flag.Duration("soak", 5*time.Second, "how long TestSoak lasts")

// trapCommand is a shell that catches TERM, for places where the test binary cannot run.
var trapCommand = []string{"sh", "-c", `trap 'echo got TERM; exit 7' TERM; echo ready $# ${#1}; sleep 1000 & wait`, "sh"}

// wantStop sends TERM, and wants a hold of one second and a prompt exit after the command's.
func (b *box) wantStop() {
	b.t.Helper()
	b.wantTermAfterHold(func() {})
	b.wantPromptExit()
}

// wantPromptExit makes the command exit with 7, and wants lameduck to exit with 7 within 2 s.
func (b *box) wantPromptExit() {
	b.t.Helper()
	start := time.Now()
	b.sendLine("exit 7")
	b.wantExit(7)
	if took := time.Since(start); took > 2*time.Second {
		b.t.Errorf("exited %v after the command; stderr:\n%v", took, b.err.all())
	}
}

// wantTermAfterHold sends TERM to lameduck, calls during, and wants TERM to reach the command
// after a hold of one second, at most 2 s late.
func (b *box) wantTermAfterHold(during func()) {
	b.t.Helper()
	start := time.Now()
	b.signal(sig.TERM)
	during()
	if after := b.out.wait(b.t, "got TERM").at.Sub(start); after < time.Second || after > 3*time.Second {
		b.t.Errorf("TERM after %v, want 1 s to 3 s; stderr:\n%v", after, b.err.all())
	}
}

// pipe and socket connect a reader, fds[0], and a writer, fds[1].
func pipe(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC) }

func socket(fds *[2]int) (err error) {
	*fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return err
}

// pipeEnds returns the reader and the writer of a connection. The files stay blocking, and
// out of Go's poller.
func pipeEnds(t *testing.T, connect func(fds *[2]int) error) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := connect(&fds); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// fillPipe writes until a write would block.
func fillPipe(t *testing.T, w *os.File) {
	fd := int(w.Fd())
	unix.SetNonblock(fd, true)
	defer unix.SetNonblock(fd, false)
	for size := 4096; size > 0; size /= 8 {
		var err error
		for err == nil || err == unix.EINTR {
			_, err = unix.Write(fd, make([]byte, size))
		}
		if err != unix.EAGAIN {
			t.Error(err)
		}
	}
}

// waitHoldLine reads until the line at the trigger.
func waitHoldLine(t *testing.T, r *os.File) {
	for in := bufio.NewScanner(r); in.Scan(); {
		if strings.Contains(in.Text(), "holding") {
			return
		}
	}
	t.Error("no line at the trigger")
}

// TestStderr: no failure of standard error delays a stop. The SIGPIPE of lameduck's own
// write is not passed on to the command; a SIGPIPE from another process is.
func TestStderr(t *testing.T) {
	run := func(name string, test func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t) })
	}
	for kind, connect := range map[string]func(fds *[2]int) error{"pipe": pipe, "socket": socket} {
		for how, fail := range map[string]func(t *testing.T, r, w *os.File){
			"full":   func(t *testing.T, r, w *os.File) { fillPipe(t, w) },
			"closed": func(t *testing.T, r, w *os.File) { r.Close() },
		} {
			run(how+" "+kind, func(t *testing.T) {
				r, w := pipeEnds(t, connect)
				fail(t, r, w)
				stopWithStderr(t, "stage", w, func() {})
			})
			run(kind+" "+how+" during the hold", func(t *testing.T) {
				r, w := pipeEnds(t, connect)
				stopWithStderr(t, "stage", w, func() { waitHoldLine(t, r); fail(t, r, w) })
			})
		}
	}
	run("dev full", func(t *testing.T) {
		w, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer w.Close()
		stopWithStderr(t, "stage", w, func() {})
	})
	run("full disk", func(t *testing.T) {
		testutil.OnTmpfs(t, "nr_blocks=1,mode=755", func(dir string) {
			w := testutil.Must(os.Create(dir + "/log"))
			defer w.Close()
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, os.Getpagesize()))
			}
			stopWithStderr(t, "stage", w, func() {})
		})
	})
	run("no descriptor", func(t *testing.T) { stopWithStderr(t, "stage:no-stderr", nil, func() {}) })
}

// stopWithStderr tests a stop with w as standard error, and calls during in the hold.
func stopWithStderr(t *testing.T, stage string, w *os.File, during func()) {
	b := newBox(t, stage, nil, append([]string{"-d", "1", "--log-level=debug", "--"}, helperCommand("catch")...)...)
	if w != nil {
		b.cmd.Stderr = w
	}
	b.run()
	b.out.wait(t, "ready")
	b.forwardMany(100)
	b.wantTermAfterHold(during)
	b.forwardMany(1) // by then lameduck has taken its own pending PIPEs
	b.signal(sig.PIPE)
	b.out.wait(t, "got PIPE")
	b.wantPromptExit()
	if n := b.signalCounts()["PIPE"]; n != 1 {
		t.Errorf("the command got PIPE %d times, want 1", n)
	}
}

// signalCounts returns how often the catch helper has printed each signal.
func (b *box) signalCounts() map[string]int {
	got := map[string]int{}
	for _, line := range b.out.all() {
		if name, ok := strings.CutPrefix(line.text, "got "); ok {
			got[name]++
		}
	}
	return got
}

// TestStopped: a stopped command gets TERM and CONT. KILL, from lameduck or another process,
// needs no CONT.
func TestStopped(t *testing.T) {
	stopped := func(t *testing.T, flags ...string) (b *box, command int) {
		t.Parallel()
		b = boot(t, nil, append(append(flags, "--"), helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		command = b.child()
		b.sendLine("killed STOP")
		testutil.Eventually(t, "stopped", func() bool { return strings.HasPrefix(status(command, "State"), "T") })
		return b, command
	}
	t.Run("TERM", func(t *testing.T) {
		b, _ := stopped(t, "-d", "1")
		b.wantTermAfterHold(func() {})
		b.out.wait(t, "got CONT")
		b.wantPromptExit()
	})
	t.Run("our KILL", func(t *testing.T) {
		b, _ := stopped(t, "-d", "1", "-r", "TERM:KILL")
		b.signal(sig.TERM)
		b.wantExit(137)
	})
	t.Run("KILL from elsewhere", func(t *testing.T) {
		b, command := stopped(t, "-d", "1")
		unix.Kill(command, unix.SIGKILL)
		b.wantExit(137)
	})
}

// TestStoppedInHold: where lameduck itself is stopped at the end of the hold, CONT ends the
// hold at once.
func TestStoppedInHold(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	start := time.Now()
	b.wantTermAfterHold(func() {
		b.err.wait(t, "holding")
		b.signal(sig.STOP)
		time.Sleep(time.Until(start.Add(1500 * time.Millisecond))) // the subject: nothing happens while lameduck is stopped
		if out := b.out.all(); len(out) != 1 {
			t.Errorf("the command printed %v while lameduck was stopped, want one line", out)
		}
		b.signal(sig.CONT)
	})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("TERM after %v, want at most 2 s", took)
	}
	b.wantPromptExit()
}

// TestIgnoresAll: where the command ignores all signals, the report is written before the end
// of the grace period, and a KILL from the orchestrator ends lameduck and the command.
func TestIgnoresAll(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "-d", "1", "--grace-period", "3", "--", "sh", "-c", `trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM; echo ready; while :; do sleep 1; done`)
	b.out.wait(t, "ready")
	command := b.child()
	b.signal(sig.TERM)
	wantMatch(t, b.err.wait(t, "still runs").text, `: held 1\.0 s \(elapsed\), sent TERM(;|$)`)
	b.cmd.Process.Kill()
	b.wantExit(-1)
	testutil.Eventually(t, "the command's end", func() bool { return hasEnded(command) })
}

// TestNoProc: without /proc a hold works as always, and features that read /proc have a
// fallback.
func TestNoProc(t *testing.T) {
	noProc := func(t *testing.T, env []string, args ...string) *box {
		t.Parallel()
		return bootStage(t, "stage:no-proc", env, args...)
	}
	t.Run("hold", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"-d", "1", "--"}, trapCommand...)...)
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("GODEBUG", func(t *testing.T) {
		script := `echo "$GODEBUG $GOTRACEBACK"; exec "$@"`
		flags := []string{"-d", "1", "--", "sh", "-c", script, "sh"}
		b := noProc(t, []string{"GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=crash"}, append(flags, helperCommand("catch")...)...)
		b.out.wait(t, "asyncpreemptoff=1 crash")
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("ignored", func(t *testing.T) { // the second stage needs the path by which lameduck was executed
		t.Parallel()
		bootStage(t, "stage:no-proc,ignore=USR1", nil, "sh", "-c", "kill -USR1 $$; exit 7").wantExit(7)
	})
	t.Run("linger", func(t *testing.T) { // kill(-1) replaces the descendants in /proc
		b := noProc(t, nil, append([]string{"--linger", "10", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, helperCommand("leftover", "child")...)...)
		b.out.wait(t, "child up")
		b.sendLine("")
		b.out.wait(t, "child done")
		b.wantExit(7)
	})
	t.Run("linger kills", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"--linger", "1", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, helperCommand("leftover", "child", "stubborn")...)...)
		b.out.wait(t, "child up")
		b.sendLine("")
		b.wantExit(7)
	})
}

// TestNoSubreaper: a lameduck other than PID 1 that cannot become a subreaper warns once and
// goes on; with --subreaper that is an error.
func TestNoSubreaper(t *testing.T) {
	t.Parallel()
	b := bootStage(t, "stage:seccomp", nil, binary, "sh", "-c", "exit 7")
	b.wantExit(7)
	b.wantOneLine("orphans will not be reaped")
	bootStage(t, "stage:seccomp", nil, binary, "-s", "sh", "-c", "exit 7").wantExit(125)
}

// TestIgnoredChild: lameduck started with CHLD ignored still gets the command's exit code,
// and the command starts with CHLD ignored.
func TestIgnoredChild(t *testing.T) {
	t.Parallel()
	bootStage(t, "stage:ignore=CHLD", nil, "--", "sh", "-c", "exit 7").wantExit(7)
	b := bootStage(t, "stage:ignore=CHLD", nil, "--", "grep", "SigIgn", "/proc/self/status")
	b.wantExit(0)
	if got := parseSignalSet(t, b.out.wait(t, "SigIgn").text); !got.Has(sig.CHLD) {
		t.Errorf("the command ignores %x", uint64(got))
	}
}

// TestSoak: signals and orphans for soakTime leave no descriptors, threads or memory behind.
func TestSoak(t *testing.T) {
	t.Parallel()
	orphans := `(while :; do (: & : & : &); sleep 0.005; done) & exec "$@"`
	b := boot(t, nil, append([]string{"-d", "1", "--log-level=info", "--", "sh", "-c", orphans, "sh"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	pid := b.cmd.Process.Pid
	usage := func() (fds []os.DirEntry, threads string, kib int) {
		fds, _ = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		return fds, status(pid, "Threads"), rss(pid)
	}
	kinds := slices.Collect(sig.Set(^uint64(0)).Without(notForwarded).All)
	b.volleys(kinds, 20)
	fds, threads, kib := usage()
	for end := time.Now().Add(*soakTime); time.Now().Before(end); {
		b.volleys(kinds, 20)
	}
	nowFds, nowThreads, nowKib := usage()
	if len(fds) == 0 || len(nowFds) != len(fds) || nowThreads != threads || nowKib > kib+heap {
		t.Errorf("%d descriptors, %s threads, %d KiB; later %d, %s, %d", len(fds), threads, kib, len(nowFds), nowThreads, nowKib)
	}
	b.wantStop()
}
