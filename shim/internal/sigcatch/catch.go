package sigcatch

import (
	"cmp"
	"math/bits"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// arrived is the set of noted signals; counts has the number of arrivals by signal.
var (
	arrived uint64
	counts  [sig.Max + 1]uint32
)

// sent is the set of signals whose latest arrival was sent by a process, and outside the set of those
// that were sent from outside of our PID namespace. os/signal does not tell the sender: the sets stay
// empty on other machines than amd64 and arm64.
var sent, outside uint64

// Sender reports whether a process sent the latest s, rather than the kernel, as for a terminal that
// hangs up, and whether from outside of our PID namespace, as container runtimes do: the kernel then gives
// the sender's process id as 0. Both are false if the sender is not known.
func Sender(s sig.Signal) (isProcess, isOutside bool) {
	return sig.Set(atomic.LoadUint64(&sent)).Has(s), sig.Set(atomic.LoadUint64(&outside)).Has(s)
}

// unmaskedBudget is how many more signals the handler lets through before it masks their
// kind (see Unblocked). The handler decrements it without a bound: negative means mask.
var unmaskedBudget int64

// asleep is 1 while the loop sleeps or is about to. The handler and Wake set it to 0, and
// wake the loop if it was 1.
var asleep uint32

// woken is 1 if Wake was called since Next last waited.
var woken uint32

// faults are the signals that the kernel also sends for a fault of the program's own.
// Go's runtime turns these into panics.
var faults = sig.SetOf(sig.ILL, sig.TRAP, sig.BUS, sig.FPE, sig.SEGV, sig.SYS)

// init is the only init of the program: before it, TERM may end the process. Without the
// entry point init leaves signals alone, so that tests and other programs that import the
// package keep their own handling.
func init() {
	if entrySeen {
		Start()
	}
}

var started bool

// Start catches signals from now on. The first call counts; it must come from the loop's
// goroutine.
func Start() {
	if !started {
		started = true
		catch()
	}
}

// Wake makes Next return, with or without a signal: the present call, or else the next one. It
// may be called from any goroutine.
func Wake() {
	atomic.StoreUint32(&woken, 1)
	if atomic.SwapUint32(&asleep, 0) == 1 {
		syscall.RawSyscall(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), futexWake, 1)
	}
}

// maxUnmasked is how many signals may arrive during Unblocked. Handling as many takes
// about 10 ms.
const maxUnmasked = 10_000

// Unblocked calls f while this thread, the loop's, blocks no signal and the handler masks
// none: a process started by f inherits an empty mask. Until the process calls execve(2)
// it shares our memory and runs the handlers that Go has not reset. A signal sent to the
// process in that time is noted here, and passed on to the process.
func Unblocked(f func()) {
	if !Direct {
		f()
		return
	}
	atomic.StoreInt64(&unmaskedBudget, maxUnmasked)
	unblock()
	f()
	atomic.StoreInt64(&unmaskedBudget, 0)
}

// unblock empties the signal mask of this thread.
//
//go:nosplit
//go:norace
func unblock() {
	var empty uint64
	const setMask = 2 // SIG_SETMASK
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&empty)), 0, 8, 0, 0)
}

// Next returns current repeats more times, then the signals left in batch, lowest number
// first.
var (
	batch   sig.Set
	current sig.Signal
	repeats uint32
)

// Next returns a signal that has arrived. Without one, Next waits until the given time (for
// ever if until is zero), and returns 0 if no signal came; it may return 0 earlier. Signals
// that arrived together are returned in the order of their numbers, as by sigtimedwait(2).
// Only the loop calls Next.
//
// awaited are the PIDs of the children whose changes the caller must see. While it waits, Next
// may reap the others, of which the caller then gets no CHLD; none if the first PID is 0.
func Next(until time.Time, awaited [2]int) sig.Signal {
	if s := take(); s != 0 {
		return s
	}
	if Direct {
		unblock()
	}
	atomic.StoreUint32(&asleep, 1)
	if s := take(); s != 0 {
		return s
	}
	if atomic.LoadUint32(&woken) == 0 {
		wait(timeout(until), awaited)
	}
	atomic.StoreUint32(&woken, 0)
	return take()
}

// take returns a signal that has arrived, or 0. All signals of one batch are returned
// before later arrivals. A standard signal is returned once per batch.
func take() sig.Signal {
	if batch == 0 && repeats == 0 {
		batch = sig.Set(atomic.SwapUint64(&arrived, 0))
	}
	for repeats == 0 {
		if batch == 0 {
			return 0
		}
		current = sig.Signal(bits.TrailingZeros64(uint64(batch)) + 1)
		batch = batch.Without(sig.SetOf(current))
		// 0 if an earlier batch took a count made just before its bit was set.
		repeats = atomic.SwapUint32(&counts[current], 0)
		if sig.Standard.Has(current) {
			repeats = min(repeats, 1)
		}
	}
	repeats--
	return current
}

// See futex(2); the operations are private to the process.
const (
	futexWake      = 129        // FUTEX_WAKE
	futexWaitUntil = 137        // FUTEX_WAIT_BITSET, whose timeout is absolute, by CLOCK_MONOTONIC
	anyWaker       = 0xffffffff // FUTEX_BITSET_MATCH_ANY
)

// nanotime is the time by CLOCK_MONOTONIC, as in time.Time.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64

// forever is longer than any wait, and fits into a time.
const forever = 365 * 24 * time.Hour

// timeout returns the argument for a wait until the given time, forever if zero. The time is
// absolute: the process may be stopped or frozen for any length of time before the kernel sees
// the call, and a relative timeout would miss the deadline by as much.
func timeout(until time.Time) syscall.Timespec {
	now, left := nanotime(), forever
	if !until.IsZero() {
		left = max(0, time.Until(until))
	}
	return syscall.NsecToTimespec(now + int64(left))
}

// Uncatchable returns the reason why this build never catches s, or "" if it can.
func Uncatchable(s sig.Signal) string { return cmp.Or(sig.Uncatchable(s), uncatchable(s)) }

// catchable returns the set of signals to catch: all but the uncatchable, and CHLD.
func catchable() sig.Set {
	set := sig.SetOf(sig.CHLD)
	for s := sig.Signal(1); s <= sig.Max; s++ {
		if Uncatchable(s) == "" {
			set = set.With(s)
		}
	}
	return set
}
