package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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

	"github.com/lameduck-init/lameduck/shim/internal/proc"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// TestAllSignalsByAllRewrites sends every signal that can be caught through
// every rewrite to a signal that our command, a Go program, can catch.
func TestAllSignalsByAllRewrites(t *testing.T) {
	from := slices.Collect(sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, sig.CHLD)).All)
	to := slices.Collect(sig.Set(^uint64(0)).Without(sig.SetOf(sig.KILL, sig.STOP, 27, 32, 33, 34)).All)
	for shift := range to {
		sendRewritten(t, from, func(i int) sig.Signal { return to[(i+shift)%len(to)] })
	}
}

// sendThrough sends all of from, each rewritten to what to says, and wants each
// to arrive once. They go one by one: the kernel lets a pending CONT and a
// pending stop cancel each other.
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

// TestInternalSignals: 32 and 33 are dropped, and do not end lameduck either, unless a
// rewrite or --stop-signal names them.
func TestInternalSignals(t *testing.T) {
	command := []string{"--", "sh", "-c", "echo ready; exec sleep 1000"}
	for _, flags := range [][]string{nil, {"-d", "1"}, {"--preset=auto"}, {"-g"}} {
		dropsInternal(t, boot(t, nil, append(flags, command...)...))
		dropsInternal(t, startProgram(t, nil, syscall.SysProcAttr{Setpgid: true}, slices.Concat([]string{binary}, flags, command)...))
	}
	for flags, code := range map[string]int{"-r 32:USR1": 138, "-r 32:32": 160, "--stop-signal=32": 160, "-r 32:USR1,33:0": 138} {
		b := boot(t, nil, append(strings.Fields(flags), command...)...)
		b.out.wait(t, "ready")
		b.signal(33)
		b.signal(32)
		b.wantExit(code)
	}
}

// TestRewriteToUncatchable covers what no command can catch, or no Go program.
func TestRewriteToUncatchable(t *testing.T) {
	for _, to := range []sig.Signal{sig.KILL, 27, 32, 33, 34} {
		b := boot(t, nil, "-r", fmt.Sprintf("HUP:%d", int(to)), "--", "sh", "-c", "echo ready; exec sleep 60")
		b.out.wait(t, "ready")
		b.signal(sig.HUP)
		b.wantExit(128 + int(to))
	}
}

// TestEarlySignal: a stop signal that comes before the command has been started
// keeps it from being started.
func TestEarlySignal(t *testing.T) {
	// A blocked signal stays pending through exec, until lameduck catches it.
	// (USR1, since Go's runtime unblocks TERM before any code of ours.)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var usr1, before unix.Sigset_t
	usr1.Val[0] = 1 << (unix.SIGUSR1 - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &usr1, &before); err != nil {
		t.Fatal(err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	b := bootStage(t, "stage-early", nil, "-d", "1", "-r", "TERM:USR1", "--", "echo", "started")
	b.wantExit(138)
	if out := b.out.all(); len(out) > 0 {
		t.Errorf("the command ran: %v", out)
	}
}

// TestTermAtStart: a TERM while we start is not lost, unless the kernel drops it,
// as it does while PID 1 has no handler. (2 is Go's own handler, as long as none
// of our code has run.)
func TestTermAtStart(t *testing.T) {
	var mu sync.Mutex
	codes := map[int]int{}
	for _, flags := range [][]string{{"--"}, {"-d", "0.1", "--"}} {
		runMany(t, 300, func() {
			b := bootBare(t, append(flags, "sleep", "1000")...)
			time.Sleep(rand.N(5 * time.Millisecond))
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
	t.Log("exit codes and how often: ", codes)
	if codes[143]+codes[2] != 600 || codes[143] == 0 {
		t.Error("others than 143 and 2")
	}
}

// unpassed are the signals that the storms leave out: the stop signal, what is
// not passed on to a Go program, and CONT, which undoes pending TSTP, TTIN and
// TTOU.
var unpassed = sig.SetOf(sig.KILL, sig.STOP, sig.TERM, sig.CHLD, 27, 32, 33, 34, sig.CONT)

// TestSignalStorm: whatever the storm, no kind of signal vanishes, none comes
// that was not sent, and one that is not pending already is never merged.
func TestSignalStorm(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "--"}, helperCommand("catch")...)...)
	b.out.wait(t, "ready")
	kinds := slices.Collect(sig.Set(^uint64(0)).Without(unpassed).All)
	const each = 20
	b.volleys(kinds, each)
	b.signal(sig.CONT)
	b.out.wait(t, "got CONT")
	last := kinds[len(kinds)-1] // of what is pending it comes last
	wild := slices.DeleteFunc(slices.Clone(kinds), func(s sig.Signal) bool { return s == sig.URG || s == last })
	b.storm(wild, 10_000)
	for i := range 3 { // neither we nor the command take what is pending at one moment only
		b.signal(last)
		b.out.waitUntil(t, "the storm's end", func() bool { return countLines(b.out.collected, "got "+last.String()) > each+i })
	}
	got := b.signalCounts()
	for _, s := range wild {
		if got[s.String()] <= each {
			t.Errorf("%v vanished", s)
		}
	}
	if len(got) != len(kinds)+1 || got["URG"] != each {
		t.Errorf("sent %v, got %v", kinds, got)
	}
	b.wantStop()
}

// TestHoldInStorm: signals that never cease keep neither the end of a hold nor
// a death from being seen.
func TestHoldInStorm(t *testing.T) {
	t.Parallel()
	b := boot(t, nil, append([]string{"-d", "1", "-r", "HUP:0,64:0", "--"}, trapCommand...)...)
	b.out.wait(t, "ready")
	few := unix.Rlimit{Cur: 1000, Max: 1000} // or the queue, which is the user's, could be too full for other tests
	if err := unix.Prlimit(b.cmd.Process.Pid, unix.RLIMIT_SIGPENDING, &few, nil); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var senders sync.WaitGroup
	for _, s := range []unix.Signal{unix.SIGHUP, 64} {
		senders.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					unix.Kill(b.cmd.Process.Pid, s)
				}
			}
		})
	}
	b.wantStop()
	close(over)
	senders.Wait()
}

// storm sends n signals of these kinds at random, from several threads.
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

// volleys sends one of each kind at once, and wants one of each, n times.
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
			b.t.Errorf("%v: sent %d, got %d", s, n, got)
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

// TestSignalsAtStart: from our first instructions on no signal is lost, of
// whatever kind. What comes before the command has been started is passed on
// when it has.
func TestSignalsAtStart(t *testing.T) {
	kinds := []sig.Signal{sig.USR1, sig.CONT, 30, 35, 64}
	flags := []string{"--log-level=debug", "-r", "USR1:WINCH,PWR:WINCH,35:WINCH,64:WINCH", "--", "sleep", "1000"}
	runMany(t, 100, func() {
		b := bootBare(t, flags...)
		testutil.Eventually(t, "signals are blocked, or caught", func() bool {
			blocked, _ := strconv.ParseUint(status(b.cmd.Process.Pid, "SigBlk"), 16, 64)
			caught, _ := proc.Caught(b.cmd.Process.Pid)
			return (sig.Set(blocked) | caught).Has(sig.RTMax)
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

// TestQueued: real-time signals are queued, and as many are passed on as came.
// The command is another lameduck, which says to a file what arrives.
func TestQueued(t *testing.T) {
	for s := range sig.SetOf(32, 33, sig.RTMin, sig.RTMin+1).All { // Go's runtime blocks not all of them
		checkQueued(t, s, 500)
	}
}

func checkQueued(t *testing.T, s sig.Signal, n int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	count := func(event string) int {
		text, _ := os.ReadFile(log)
		return strings.Count(string(text), "ing: "+event+"\n")
	}
	inner := []string{"sh", "-c", `exec "$@" 2>>"$0"`, log, binary, "--log-level=debug", "-r", fmt.Sprintf("%d:0,HUP:0", int(s)), "sleep", "1000"}
	b := boot(t, nil, append([]string{"-r", fmt.Sprintf("%d:%[1]d", int(s)), "--"}, inner...)...) // 32 and 33 pass only if asked for
	testutil.Eventually(t, "the command runs", func() bool { return count("started") == 1 })
	for range n {
		b.signal(s)
	}
	testutil.Eventually(t, "all arrive", func() bool { return count(s.String()) >= n })
	b.signal(sig.HUP)
	testutil.Eventually(t, "HUP arrives", func() bool { return count("HUP") == 1 })
	if got := count(s.String()); got != n {
		t.Errorf("%v: sent %d, got %d", s, n, got)
	}
}

// TestPlainBuild: what is built without the Makefile's flags passes on what Go's
// runtime lets it.
func TestPlainBuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lameduck")
	build(t, "go", "build", "-o", path, "./cmd/lameduck")
	passes(t, sig.Set(^uint64(0)).Without(unpassed.With(sig.URG)), path)
}

// foreign are the processors that TestForeignBuild builds for, each with the rooms
// whose tests an emulator runs: sigcatch has assembly for amd64 and arm64; s390x is
// big-endian, which the rooms that decode the kernel's answers must be able to read.
// The emulator numbers real-time signals anew: 35 arrives as 32, which lameduck drops
// unless a flag asks for it. The binary for s390x has no handlers of its own to take
// such a flag, and 35 and 36 are lost there.
var foreignArchs = []struct {
	arch, emulator string
	rooms          []string
	flags          []string
	lost           sig.Set
}{
	{"amd64", "qemu-x86_64", []string{"sigcatch"}, []string{"-r", "32:32,33:33"}, 0},
	{"arm64", "qemu-aarch64", []string{"sigcatch"}, []string{"-r", "32:32,33:33"}, 0},
	{"s390x", "qemu-s390x", []string{"proc", "procnet", "scope", "testutil/script", "sig", "sigcatch", "sockdiag", "stop", "tcp", "traffic"}, nil, sig.SetOf(35, 36)},
}

// TestForeignBuild: the same on other kinds of processor.
func TestForeignBuild(t *testing.T) {
	for _, f := range foreignArchs {
		if f.arch == runtime.GOARCH {
			continue
		}
		t.Run(f.arch, func(t *testing.T) {
			needs(t, "make", f.emulator)
			test := []string{"env", "GOARCH=" + f.arch, "go", "test", "-exec", f.emulator}
			for _, room := range f.rooms {
				test = append(test, "./shim/internal/"+room)
			}
			build(t, test...)
			path := filepath.Join(t.TempDir(), "lameduck")
			build(t, "make", "build", "GOARCH="+f.arch, "OUT="+path)
			lameduck := append([]string{testutil.Must(exec.LookPath(f.emulator)), path}, f.flags...)
			passes(t, sig.Set(^uint64(0)).Without(unpassed|f.lost), lameduck...)
		})
	}
}

func build(t *testing.T, words ...string) {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = testutil.Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
}

// family is a command with orphans, which then catches signals.
func family() []string {
	orphans := `for i in 1 2 3; do (: & : & : &); done; exec "$@"`
	return append([]string{"-d", "1", "-r", "TERM:USR1", "sh", "-c", orphans, "sh"}, helperCommand("catch")...)
}

// passes wants signals passed on, orphans reaped and a hold, of a lameduck that
// is called so.
func passes(t *testing.T, kinds sig.Set, lameduck ...string) {
	b := newBox(t, "stage", nil, family()...)
	i := slices.Index(b.cmd.Args, binary)
	b.cmd.Args = slices.Replace(b.cmd.Args, i, i+1, lameduck...)
	b.run()
	b.passes(kinds)
}

func (b *box) passes(kinds sig.Set) {
	b.out.wait(b.t, "ready")
	for s := range kinds.Without(sig.SetOf(sig.USR1)).All { // one by one: an emulator may have no queue
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

// TestNotPID1: all of it works for any other process too.
func TestNotPID1(t *testing.T) {
	b := newBox(t, "stage", nil, family()...)
	b.cmd.Path, b.cmd.Args, b.cmd.SysProcAttr = binary, b.cmd.Args[3:], nil
	b.run()
	b.passes(sig.Set(^uint64(0)).Without(unpassed))
}

// TestOwnSignals: what the command sends to PID 1 comes back to it.
func TestOwnSignals(t *testing.T) {
	boot(t, nil, "sh", "-c", "trap 'exit 7' USR1; kill -USR1 1; while :; do sleep 0.01; done").wantExit(7)
}
