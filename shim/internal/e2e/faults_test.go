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

// What the tests here have in common: something is amiss, for the built
// lameduck as PID 1, and a stop with a hold goes as ever.

// soak is how long TestSoak lasts: 30s and more before a release.
var soak = flag.Duration("soak", 5*time.Second, "how long TestSoak lasts")

// trapCommand is a shell that catches TERM, for where our own programs cannot run.
var trapCommand = []string{"sh", "-c", `trap 'echo got TERM; exit 7' TERM; echo ready $# ${#1}; sleep 1000 & wait`, "sh"}

// wantStop wants a stop that holds one second, and leaves with the command's
// code as soon as there is one.
func (b *box) wantStop() {
	b.t.Helper()
	b.wantTermAfterHold(func() {})
	b.wantPromptExit()
}

// wantPromptExit has the command exit, and wants lameduck to do the same at once.
func (b *box) wantPromptExit() {
	b.t.Helper()
	start := time.Now()
	b.sendLine("exit 7")
	b.wantExit(7)
	if took := time.Since(start); took > 2*time.Second {
		b.t.Errorf("took %v to leave; it said:\n%v", took, b.err.all())
	}
}

// wantTermAfterHold sends TERM, does what is to happen during the hold, and wants TERM to
// reach the command when the hold of one second is over, and not much later.
func (b *box) wantTermAfterHold(during func()) {
	b.t.Helper()
	start := time.Now()
	b.signal(sig.TERM)
	during()
	if after := b.out.wait(b.t, "got TERM").at.Sub(start); after < time.Second || after > 3*time.Second {
		b.t.Errorf("TERM after %v; it said:\n%v", after, b.err.all())
	}
}

// Two ways in which a reader and a writer are connected.
func pipe(fds *[2]int) error { return unix.Pipe2(fds[:], unix.O_CLOEXEC) }

func socket(fds *[2]int) (err error) {
	*fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	return err
}

// pipeEnds are the two ends of such a connection, without what Go would do to them.
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

// fillPipe writes all that goes without waiting.
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

// awaitHold reads until the line at the trigger.
func awaitHold(t *testing.T, r *os.File) {
	for in := bufio.NewScanner(r); in.Scan(); {
		if strings.Contains(in.Text(), "holding") {
			return
		}
	}
	t.Error("no line at the trigger")
}

// TestStderr: nothing that may become of standard error delays a stop, and the
// PIPE that it makes the kernel send us is not passed on; others are.
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
				stderrFails(t, "stage", w, func() {})
			})
			run(kind+" "+how+" during the hold", func(t *testing.T) {
				r, w := pipeEnds(t, connect)
				stderrFails(t, "stage", w, func() { awaitHold(t, r); fail(t, r, w) })
			})
		}
	}
	run("dev full", func(t *testing.T) {
		w, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer w.Close()
		stderrFails(t, "stage", w, func() {})
	})
	run("full disk", func(t *testing.T) {
		testutil.OnTmpfs(t, "nr_blocks=1,mode=755", func(dir string) {
			w := testutil.Must(os.Create(dir + "/log"))
			defer w.Close()
			var err error
			for err == nil {
				_, err = w.Write(make([]byte, os.Getpagesize()))
			}
			stderrFails(t, "stage", w, func() {})
		})
	})
	run("no descriptor", func(t *testing.T) { stderrFails(t, "stage:no-stderr", nil, func() {}) })
}

func stderrFails(t *testing.T, stage string, w *os.File, during func()) {
	b := newBox(t, stage, nil, append([]string{"-d", "1", "--log-level=debug", "--"}, helperCommand("catch")...)...)
	if w != nil {
		b.cmd.Stderr = w
	}
	b.run()
	b.out.wait(t, "ready")
	b.forwardMany(100)
	b.wantTermAfterHold(during)
	b.forwardMany(1) // after which what PIPEs of our own were under way have been seen
	b.signal(sig.PIPE)
	b.out.wait(t, "got PIPE")
	b.wantPromptExit()
	if n := b.signalCounts()["PIPE"]; n != 1 {
		t.Errorf("PIPE came %d times", n)
	}
}

// signalCounts is how often the command says it got which signal.
func (b *box) signalCounts() map[string]int {
	got := map[string]int{}
	for _, line := range b.out.all() {
		if name, ok := strings.CutPrefix(line.text, "got "); ok {
			got[name]++
		}
	}
	return got
}

// TestStopped: a command that is stopped gets TERM and is woken; KILL needs no
// waking, be it ours or somebody's.
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

// TestStoppedInHold: when lameduck itself was stopped, the hold ends as soon as
// it goes on, if it should have ended meanwhile.
func TestStoppedInHold(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	start := time.Now()
	b.wantTermAfterHold(func() {
		b.err.wait(t, "holding")
		b.signal(sig.STOP)
		testutil.Eventually(t, "the hold should be over", func() bool { return time.Since(start) > 1500*time.Millisecond })
		if said := len(b.out.all()); said != 1 {
			t.Errorf("%d lines while stopped", said)
		}
		b.signal(sig.CONT)
	})
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("TERM after %v", took)
	}
	b.wantPromptExit()
}

// TestIgnoresAll: a command that nothing can move gets its TERM, the report is
// written ahead, and the orchestrator's KILL ends all.
func TestIgnoresAll(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, "-d", "1", "--grace-period", "3", "--", "sh", "-c", `trap '' HUP INT QUIT USR1 USR2 PIPE ALRM TERM; echo ready; while :; do sleep 1; done`)
	b.out.wait(t, "ready")
	command := b.child()
	b.signal(sig.TERM)
	if said := b.err.wait(t, "still runs").text; !strings.Contains(said, "sent TERM at +1.0 s") {
		t.Errorf("said %q", said)
	}
	b.cmd.Process.Kill()
	if code := b.waitExit(); code != -1 {
		t.Errorf("left with %d", code)
	}
	testutil.Eventually(t, "the command's end", func() bool { return hasEnded(command) })
}

// TestNoProc: without /proc all that does not need it works; with what would
// need it, lameduck does what is next best.
func TestNoProc(t *testing.T) {
	shell := []string{"sh", "-c", "echo ready; sleep 1000 & wait"}
	noProc := func(t *testing.T, env []string, args ...string) *box {
		t.Parallel()
		return bootStage(t, "stage:no-proc", env, args...)
	}
	t.Run("hold", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"-d", "1", "--"}, trapCommand...)...)
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("drop-unhandled", func(t *testing.T) { // passes all then
		b := noProc(t, nil, append([]string{"--drop-unhandled", "--"}, shell...)...)
		b.out.wait(t, "ready")
		b.signal(sig.HUP)
		b.wantExit(129)
	})
	t.Run("GODEBUG", func(t *testing.T) { // catch would need /proc if it were not passed on
		b := noProc(t, []string{"GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=crash"}, append([]string{"-d", "1", "--"}, helperCommand("catch")...)...)
		b.out.wait(t, "ready")
		b.wantStop()
	})
	t.Run("ignored", func(t *testing.T) { // the second stage is found by the path we were executed by
		t.Parallel()
		bootStage(t, "stage:no-proc,ignore=USR1", nil, "sh", "-c", "kill -USR1 $$; exit 7").wantExit(7)
	})
	t.Run("linger", func(t *testing.T) { // asks all there is
		b := noProc(t, nil, append([]string{"--linger", "10", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, helperCommand("remnant", "it")...)...)
		b.out.wait(t, "it up")
		b.sendLine("")
		b.out.wait(t, "it done")
		b.wantExit(7)
	})
	t.Run("linger kills", func(t *testing.T) {
		b := noProc(t, nil, append([]string{"--linger", "1", "--", "sh", "-c", `"$@" & read x; exit 7`, "sh"}, helperCommand("remnant", "it", "stubborn")...)...)
		b.out.wait(t, "it up")
		b.sendLine("")
		b.wantExit(7)
	})
}

// TestNoSubreaper: one that cannot have orphans, and is not PID 1, says so once
// and goes on, unless it was asked for.
func TestNoSubreaper(t *testing.T) {
	t.Parallel()
	b := bootStage(t, "stage:seccomp", nil, binary, "sh", "-c", "exit 7")
	b.wantExit(7)
	if said := b.err.all(); len(said) != 1 || !strings.Contains(said[0].text, "orphans will not be reaped") {
		t.Errorf("said %v", said)
	}
	bootStage(t, "stage:seccomp", nil, binary, "-s", "sh", "-c", "exit 7").wantExit(125)
}

// TestIgnoredChild: that CHLD was ignored makes us miss no end, and the command
// finds it so.
func TestIgnoredChild(t *testing.T) {
	t.Parallel()
	bootStage(t, "stage:ignore=CHLD", nil, "--", "sh", "-c", "exit 7").wantExit(7)
	b := bootStage(t, "stage:ignore=CHLD", nil, "--", "grep", "SigIgn", "/proc/self/status")
	b.wantExit(0)
	if got := hexOf(t, b.out.wait(t, "SigIgn").text); !got.Has(sig.CHLD) {
		t.Errorf("the command ignores %x", uint64(got))
	}
}

// TestSoak: signals and orphans without end leave nothing behind in us.
func TestSoak(t *testing.T) {
	t.Parallel()
	orphans := `(while :; do (: & : & : &); sleep 0.005; done) & exec "$@"`
	b := boot(t, nil, append([]string{"-d", "1", "--log-level=info", "--", "sh", "-c", orphans, "sh"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	pid := b.cmd.Process.Pid
	look := func() (fds []os.DirEntry, threads string, kib int) {
		fds, _ = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		return fds, status(pid, "Threads"), rss(pid)
	}
	kinds := slices.Collect(sig.Set(^uint64(0)).Without(unpassed).All)
	b.volleys(kinds, 20)
	fds, threads, kib := look()
	for end := time.Now().Add(*soak); time.Now().Before(end); {
		b.volleys(kinds, 20)
	}
	nowFds, nowThreads, nowKib := look()
	if len(fds) == 0 || len(nowFds) != len(fds) || nowThreads != threads || nowKib > kib+heap {
		t.Errorf("%d descriptors, %s threads, %d KiB; later %d, %s, %d", len(fds), threads, kib, len(nowFds), nowThreads, nowKib)
	}
	b.wantStop()
}
