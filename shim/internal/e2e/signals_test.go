package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestAllSignalsByAllRewrites sends every signal that can be caught through every rewrite to
// a signal that the command, a Go program, can catch.
func TestAllSignalsByAllRewrites(t *testing.T) {
	from := slices.Collect(sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, sig.CHLD)).All)
	to := slices.Collect(sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, 27, 32, 33, 34)).All)
	for shift := range to {
		sendRewritten(t, from, func(i int) sig.Signal { return to[(i+shift)%len(to)] })
	}
}

// sendRewritten sends every signal of from, with rewrites to the signals that to returns,
// and checks that each arrives once. The signals go one by one, since the kernel lets a
// pending CONT and a pending stop signal cancel each other.
func sendRewritten(t *testing.T, from []sig.Signal, to func(i int) sig.Signal) {
	t.Helper()
	var rewrites, want []string
	for i, s := range from {
		rewrites = append(rewrites, fmt.Sprintf("%d:%d", int(s), int(to(i))))
		want = append(want, fmt.Sprintf("got %v", to(i)))
	}
	b := boot(t, nil, append([]string{"-r", strings.Join(rewrites, ","), "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	for i, s := range from {
		b.signal(s)
		b.out.waitCount(t, i+2)
	}
	b.sendLine("exit 0")
	b.wantExit(0)
	var got []string
	for _, line := range b.out.all()[1:] {
		got = append(got, line.text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestInternalSignals: 32 and 33 are dropped and do not end lameduck, unless a rewrite or
// --stop-signal names them.
func TestInternalSignals(t *testing.T) {
	command := []string{"--", "sh", "-c", "echo ready; exec sleep 1000"}
	for _, flags := range [][]string{nil, {"-d", "1"}, {"--preset=auto"}, {"-g"}} {
		wantInternalDropped(t, boot(t, nil, append(flags, command...)...))
		wantInternalDropped(t, startProgram(t, nil, syscall.SysProcAttr{Setpgid: true}, slices.Concat([]string{binary}, flags, command)...))
	}
	for flags, code := range map[string]int{"-r 32:USR1": 138, "-r 32:32": 160, "--stop-signal=32": 160, "-r 32:USR1,33:0": 138} {
		b := boot(t, nil, append(strings.Fields(flags), command...)...)
		b.out.wait(t, "ready")
		b.signal(33)
		b.signal(32)
		b.wantExit(code)
	}
}

// TestRewriteToUncatchable covers the signals that no command, or no Go program, can catch.
func TestRewriteToUncatchable(t *testing.T) {
	for _, to := range []sig.Signal{sig.KILL, 27, 32, 33, 34} {
		b := boot(t, nil, "-r", fmt.Sprintf("HUP:%d", int(to)), "--", "sh", "-c", "echo ready; exec sleep 60")
		b.out.wait(t, "ready")
		b.signal(sig.HUP)
		b.wantExit(128 + int(to))
	}
}

// bootEarlyUSR1 boots lameduck with USR1 pending. A blocked signal stays pending through
// exec until lameduck catches the signal. USR1 stands for a stop signal here, since Go's
// runtime unblocks TERM before lameduck's first instruction.
func bootEarlyUSR1(t *testing.T, args ...string) *box {
	t.Helper()
	runtime.LockOSThread() // the signal mask is the thread's, and inherited by the child
	defer runtime.UnlockOSThread()
	var usr1, before unix.Sigset_t
	usr1.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &usr1, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return bootStage(t, "stage-early", nil, args...)
}

// TestEarlySignal: a stop signal before the start of the command keeps the command from
// being started.
func TestEarlySignal(t *testing.T) {
	b := bootEarlyUSR1(t, "-d", "1", "-r", "TERM:USR1", "--", "echo", "started")
	b.wantExit(138)
	if out := b.out.all(); len(out) > 0 {
		t.Errorf("the command ran: %v", out)
	}
}

// TestTermAtStart: a TERM during lameduck's start is not lost, unless the kernel drops the
// signal because PID 1 has no handler yet. Exit code 2 is from Go's own handler, before
// lameduck's first instruction.
func TestTermAtStart(t *testing.T) {
	var mu sync.Mutex
	codes := map[int]int{}
	for _, flags := range [][]string{{"--"}, {"-d", "0.1", "--"}} {
		runMany(t, 300, func() {
			b := bootBare(t, append(flags, "sleep", "1000")...)
			time.Sleep(rand.N(5 * time.Millisecond)) // to send TERM at a random moment of the start
			ready := func() bool {
				set, _ := strconv.ParseUint(status(b.cmd.Process.Pid, "SigCgt"), 16, 64)
				return sig.Set(set).Has(sig.TERM)
			}
			early := !ready()
			b.signal(sig.TERM)
			if early {
				testutil.Eventually(t, "TERM is caught", func() bool { return ready() || hasEnded(b.cmd.Process.Pid) })
				unix.Kill(b.cmd.Process.Pid, unix.SIGTERM)
			}
			code := b.waitExit()
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	t.Log("number of runs by exit code: ", codes)
	if codes[143]+codes[2] != 600 || codes[143] == 0 {
		t.Errorf("exit codes: %v, want only 143 and 2", codes)
	}
}

// notForwarded are the signals that the storms leave out: the stop signal, the signals that a Go
// program does not see, and CONT, which cancels pending TSTP, TTIN and TTOU.
var notForwarded = sig.SetOf(sig.KILL, sig.STOP, sig.TERM, sig.CHLD, 27, 32, 33, 34, sig.CONT)

// TestSignalStorm: in a storm of signals no kind of signal is lost, the command gets no
// signal that was not sent, and a signal that is not pending yet is never merged.
func TestSignalStorm(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	kinds := slices.Collect(sig.Set(^uint64(0)).Without(notForwarded).All)
	const each = 20
	b.volleys(kinds, each)
	b.signal(sig.CONT)
	b.out.wait(t, "got CONT")
	last := kinds[len(kinds)-1] // the kernel delivers the lowest pending signal first
	wild := slices.DeleteFunc(slices.Clone(kinds), func(s sig.Signal) bool { return s == sig.URG || s == last })
	b.storm(wild, 10_000)
	for i := range 3 { // lameduck and the command each take pending signals in several batches
		b.signal(last)
		b.out.waitUntil(t, "the storm's end", func() bool { return countLines(b.out.collected, "got "+last.String()) > each+i })
	}
	got := b.signalCounts()
	for _, s := range wild {
		if got[s.String()] <= each {
			t.Errorf("no %v of the storm arrived", s)
		}
	}
	if len(got) != len(kinds)+1 || got["URG"] != each {
		t.Errorf("sent %v, the command got %v", kinds, got)
	}
	b.wantStop()
}

// TestHoldInStorm: signals without end delay neither the end of a hold nor the report of the
// command's exit.
func TestHoldInStorm(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "-r", "HUP:0,64:0", "--"}, trapCommand...)...)
	b.out.wait(t, "ready")
	queue := unix.Rlimit{Cur: 1000, Max: 1000} // the limit counts per user: leave room for parallel tests
	if err := unix.Prlimit(b.cmd.Process.Pid, unix.RLIMIT_SIGPENDING, &queue, nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var senders sync.WaitGroup
	for _, s := range []unix.Signal{unix.SIGHUP, 64} {
		senders.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					unix.Kill(b.cmd.Process.Pid, s)
				}
			}
		})
	}
	b.wantStop()
	close(done)
	senders.Wait()
}

// storm sends n signals of random kinds, from several threads.
func (b *box) storm(kinds []sig.Signal, n int) {
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range n / 4 {
				b.signal(kinds[rand.IntN(len(kinds))])
			}
		})
	}
	senders.Wait()
}

// volleys sends one signal of each kind at once, n times, and checks that the command gets
// one of each every time.
func (b *box) volleys(kinds []sig.Signal, n int) {
	b.t.Helper()
	before := b.signalCounts()
	for range n {
		lines := len(b.out.all())
		for _, s := range kinds {
			b.signal(s)
		}
		b.out.waitCount(b.t, lines+len(kinds))
	}
	after := b.signalCounts()
	for _, s := range kinds {
		if got := after[s.String()] - before[s.String()]; got != n {
			b.t.Errorf("%v: sent %d, the command got %d", s, n, got)
		}
	}
}

func countLines(list []outputLine, text string) (n int) {
	for _, s := range list {
		if s.text == text {
			n++
		}
	}
	return n
}

// TestSignalsAtStart: no signal of any kind is lost from lameduck's first instructions on.
// Signals that arrive before the command has started are passed on after the start.
func TestSignalsAtStart(t *testing.T) {
	kinds := []sig.Signal{sig.USR1, sig.CONT, 30, 35, 64}
	flags := []string{"--log-level=debug", "-r", "USR1:WINCH,PWR:WINCH,35:WINCH,64:WINCH", "--", "sleep", "1000"}
	runMany(t, 100, func() {
		b := bootBare(t, flags...)
		testutil.Eventually(t, "signals are blocked, or caught", func() bool {
			blocked, _ := strconv.ParseUint(status(b.cmd.Process.Pid, "SigBlk"), 16, 64)
			caught, _ := strconv.ParseUint(status(b.cmd.Process.Pid, "SigCgt"), 16, 64)
			return sig.Set(blocked | caught).Has(sig.RTMax)
		})
		for _, s := range kinds {
			b.signal(s)
		}
		for _, s := range kinds {
			b.err.wait(t, ": "+s.String())
		}
		b.cmd.Process.Kill()
		b.waitExit()
	})
}

// TestQueued: real-time signals are queued, so as many are passed on as were sent. The
// command is another lameduck, which logs signals to a file.
func TestQueued(t *testing.T) {
	for s := range sig.SetOf(32, 33, sig.RTMin, sig.RTMin+1).All { // Go's runtime blocks some of these
		wantQueued(t, s, 500)
	}
}

func wantQueued(t *testing.T, s sig.Signal, n int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	count := func(event string) int {
		text, _ := os.ReadFile(log)
		return strings.Count(string(text), "ing: "+event+"\n")
	}
	inner := []string{"sh", "-c", `exec "$@" 2>>"$0"`, log, binary, "--log-level=debug", "-r", fmt.Sprintf("%d:0,HUP:0", int(s)), "sleep", "1000"}
	b := boot(t, nil, append([]string{"-r", fmt.Sprintf("%d:%[1]d", int(s)), "--"}, inner...)...) // lameduck passes 32 and 33 only with a rewrite
	testutil.Eventually(t, "the command runs", func() bool { return count("started") == 1 })
	for range n {
		b.signal(s)
	}
	testutil.Eventually(t, "every signal has arrived", func() bool { return count(s.String()) >= n })
	b.signal(sig.HUP)
	testutil.Eventually(t, "HUP has arrived", func() bool { return count("HUP") == 1 })
	if got := count(s.String()); got != n {
		t.Errorf("%v: sent %d, the command got %d", s, n, got)
	}
}

// orphansCommand are the arguments for lameduck with a command that leaves orphans and then
// catches signals.
func orphansCommand() []string {
	orphans := `for i in 1 2 3; do (: & : & : &); done; exec "$@"`
	return append([]string{"-d", "1", "-r", "TERM:USR1", "sh", "-c", orphans, "sh"}, helperCommand("catch")...)
}

// wantForwardingBy checks a lameduck with the given command line: signals of the kinds are passed on,
// orphans reaped, and a stop is held.
func wantForwardingBy(t *testing.T, kinds sig.Set, lameduck ...string) {
	b := newBox(t, "stage", nil, orphansCommand()...)
	i := slices.Index(b.cmd.Args, binary)
	b.cmd.Args = slices.Replace(b.cmd.Args, i, i+1, lameduck...)
	b.run()
	b.wantForwarding(kinds)
}

func (b *box) wantForwarding(kinds sig.Set) {
	b.out.wait(b.t, "ready")
	for s := range kinds.Without(sig.SetOf(sig.USR1)).All { // one by one, since an emulator may have no signal queue
		b.signal(s)
		b.out.wait(b.t, "got "+s.String())
	}
	testutil.Eventually(b.t, "orphans are reaped", func() bool { return len(children(b.cmd.Process.Pid)) == 1 })
	b.signal(sig.TERM)
	b.err.wait(b.t, "holding 1 s, then USR1")
	b.out.wait(b.t, "got USR1")
	b.sendLine("exit 7")
	b.wantExit(7)
}

// TestNotPID1: signals, orphans and holds work when lameduck is not PID 1.
func TestNotPID1(t *testing.T) {
	b := newBox(t, "stage", nil, orphansCommand()...)
	b.cmd.Path, b.cmd.Args = binary, b.cmd.Args[3:]
	b.cmd.SysProcAttr = nil
	b.run()
	b.wantForwarding(sig.Set(^uint64(0)).Without(notForwarded))
}

// TestOwnSignals: a signal that the command sends to PID 1 comes back to the command.
func TestOwnSignals(t *testing.T) {
	boot(t, nil, "sh", "-c", "trap 'exit 7' USR1; kill -USR1 1; while :; do sleep 0.01; done").wantExit(7)
}
