package init_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
	"github.com/lameduck-init/lameduck/shim/internal/testutil/netns"
)

// catchable are the signals that a Go program can catch.
var catchable = ^sig.SetOf(sig.KILL, sig.STOP, 27, 32, 33, 34)

// TestRewrites sends every signal that can be caught through twelve rewrites, whose targets are, as
// often as each other, all signals that the command, a Go program, can catch. The signals go one by
// one, since the kernel lets a pending CONT and a pending stop signal cancel each other.
func TestRewrites(t *testing.T) {
	from := slices.Collect((^sig.SetOf(sig.KILL, sig.STOP, sig.CHLD)).All)
	to := slices.Collect(catchable.All)
	for shift := 0; shift < len(to); shift += 5 {
		var rewrites []string
		session := "ready"
		for i, s := range from {
			arrives := to[(i+shift)%len(to)]
			rewrites = append(rewrites, fmt.Sprintf("%d:%d", int(s), int(arrives)))
			session += fmt.Sprintf(" / %d / got %v", int(s), arrives)
		}
		box.Row{"line": "LAMEDUCK -r " + strings.Join(rewrites, ",") + " -- CATCH", "session": session + " / only / > exit 7 / exits 7"}.Play(t, nil)
	}
}

// TestDeadlySignals covers the signals that no Go program can catch: 32 and 33 are dropped,
// unless a rewrite or --stop-signal names them; a rewrite may name the others too.
func TestDeadlySignals(t *testing.T) {
	for _, on := range []string{"", "outside"} {
		for _, c := range box.Table(`
			case             | session
			-d 1             | ready / 32 / 33 / 64 / exits 192
			--preset=auto    | ready / 32 / 33 / 64 / exits 192
			-g               | ready / 32 / 33 / 64 / exits 192
			-r 32:USR1       | ready / 33 / 32 / exits 138
			-r 32:32         | ready / 33 / 32 / exits 160
			--stop-signal=32 | ready / 33 / 32 / exits 160
			-r 32:USR1,33:0  | ready / 33 / 32 / exits 138
			-r HUP:KILL      | ready / HUP / exits 137
			-r HUP:27        | ready / HUP / exits 155
			-r HUP:32        | ready / HUP / exits 160
			-r HUP:33        | ready / HUP / exits 161
			-r HUP:34        | ready / HUP / exits 162
		`) {
			c["on"], c["line"] = on, "LAMEDUCK "+c["case"]+" -- sh -c 'echo ready; exec sleep 1000'"
			c.Play(t, nil)
		}
	}
}

// TestSignalAtEachCall: at whichever system call of its start lameduck gets a signal, from the
// first call until the command runs, the exit code is 128+n: a stop signal ends lameduck, and
// the others are passed on to the command. Nothing is printed.
func TestSignalAtEachCall(t *testing.T) {
	t.Parallel()
	netns.Need(t)
	runtime.LockOSThread() // each lameduck is traced by this thread
	defer runtime.UnlockOSThread()
	kinds := []sig.Signal{sig.TERM, sig.QUIT, sig.HUP, sig.SEGV, sig.INT, sig.ABRT, sig.SYS, sig.USR1, sig.STKFLT, sig.PWR, 35, sig.RTMax}
	for call, running := 1, false; !running; call++ {
		var stderr strings.Builder
		cmd := exec.Command(box.Binary, "sleep", "10")
		cmd.Stderr = &stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Ptrace: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		var status unix.WaitStatus
		unix.Wait4(pid, &status, 0, nil) // for the execve of lameduck
		for range 2 * call {             // a call stops twice, when it begins and when it ends
			unix.PtraceSyscall(pid, 0)
			unix.Wait4(pid, &status, 0, nil)
		}
		running = len(box.Children(pid)) > 0
		s := kinds[call%len(kinds)]
		unix.Kill(pid, unix.Signal(s))
		unix.PtraceDetach(pid)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 128+int(s) || stderr.Len() > 0 {
			t.Fatalf("%v at call %d: exit code %d, stderr: %s", s, call, code, stderr.String())
		}
	}
}

// stormy are the signals of the storms: without the stop signal, and without CONT, which
// cancels pending TSTP, TTIN and TTOU.
var stormy = catchable.Without(sig.SetOf(sig.TERM, sig.CHLD, sig.CONT))

// TestSignalStorm: of a hundred volleys, each of one signal of every kind, the command gets every
// signal, and no other: Go's own URG in particular. Descriptors, threads and memory are the same
// afterwards.
func TestSignalStorm(t *testing.T) {
	t.Parallel()
	b := box.Setup{}.Catch(t, "-d 1")
	var want []string
	for s := range stormy.All {
		want = append(want, "got "+s.String())
	}
	slices.Sort(want)
	volley := func(n int) {
		for s := range stormy.All {
			b.Signal(s)
		}
		b.Out.WaitNth(1+n*len(want), "")
		got := b.Out.Texts()[1+(n-1)*len(want):]
		slices.Sort(got) // signals arrive in any order
		if !slices.Equal(got, want) {
			t.Fatalf("volley %d: %q, want %q", n, got, want)
		}
	}
	volley(1)
	before := b.Gauge()
	for n := range 100 {
		volley(2 + n)
	}
	if now := b.Gauge(); now.Grown(before) {
		t.Errorf("%+v, before the storm %+v", now, before)
	}
	b.WantHold(b.Stop(), time.Second, "elapsed")
}

// TestHoldInStorm: signals without end delay neither the end of a hold nor the report of the
// command's exit.
func TestHoldInStorm(t *testing.T) {
	t.Parallel()
	b := box.Setup{}.Catch(t, "-d 1 -r HUP:0,64:0")
	queue := unix.Rlimit{Cur: 1000, Max: 1000} // the limit counts per user: leave room for parallel tests
	if err := unix.Prlimit(b.Pid(), unix.RLIMIT_SIGPENDING, &queue, nil); err != nil {
		t.Fatal(err)
	}
	end := box.Repeat(time.Microsecond, func() {
		for range 100 {
			unix.Kill(b.Pid(), unix.SIGHUP)
			unix.Kill(b.Pid(), 64)
		}
	})
	b.WantHold(b.Stop(), time.Second, "elapsed")
	end()
}

// TestQueued: real-time signals are queued, so as many are passed on as were sent. The
// command is another lameduck, which logs signals.
func TestQueued(t *testing.T) {
	const sent = 500
	for s := range sig.SetOf(32, 33, sig.RTMin, sig.RTMin+1).All { // Go's runtime blocks some of these
		b := box.Setup{}.Boot(t, fmt.Sprintf("-r %d:%[1]d", int(s)), box.Binary, // lameduck passes 32 and 33 only with a rewrite
			"--log-level=debug", "-r", fmt.Sprintf("%d:0,HUP:0", int(s)), "sleep", "1000")
		testutil.Eventually(t, "the command gets signals", func() bool {
			b.Signal(sig.WINCH)
			return b.Err.Count("ing: WINCH") > 0
		})
		for range sent {
			b.Signal(s)
		}
		b.Err.WaitNth(sent, "ing: "+s.String())
		b.Signal(sig.HUP)
		b.Err.Wait("ing: HUP")
		if got := b.Err.Count("ing: " + s.String()); got != sent {
			t.Errorf("%v: sent %d, the command got %d", s, sent, got)
		}
	}
}
