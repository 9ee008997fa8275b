package sig

import (
	"math/bits"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A signal is noted where it arrives, and taken by the loop. os/signal would do,
// and does where our ELF entry point did not come first; but it catches a signal
// only when told so, some 40 µs each, and hands everything through a thread of its
// own. So elsewhere a handler of our own notes it: every signal, from one system
// call on (handler_*.s).
//
// A kind that has been noted is blocked until the loop has taken it. So none is
// lost to another that never ceases, real-time signals stay in the kernel's queue,
// and however many come, the loop gets on. Go's runtime keeps HUP, INT, QUIT,
// ABRT, TERM, CHLD and some others open in all of its threads; there they stay
// blocked after the first. So, and while Unblocked is at work, real-time signals
// are counted.

// arrived is the set of what has been noted, and counts how often each was.
var (
	arrived uint64
	counts  [Max + 1]uint32
)

// open is how many more signals may arrive without being blocked. It goes on below
// zero.
var open int64

// asleep is 1 where the loop sleeps or is about to. Who notes a signal sets it to
// 0, and wakes the loop where it was 1.
var asleep uint32

// faults are what the kernel sends for a fault of the program's own, too. Those
// are Go's.
const faults Set = 1<<(syscall.SIGILL-1) | 1<<(syscall.SIGTRAP-1) | 1<<(syscall.SIGBUS-1) |
	1<<(syscall.SIGFPE-1) | 1<<(syscall.SIGSEGV-1) | 1<<(syscall.SIGSYS-1)

// init is the only one of the program, since until it has run a TERM may end us.
func init() {
	if entrySeen {
		handle()
	} else {
		relay()
	}
}

// relay has Go's runtime take them. Never signal.Ignore: an ignored signal would
// stay ignored in the command.
func relay() {
	from := make(chan os.Signal, 8192) // the runtime drops what finds it full
	for s := range Catchable().All {
		signal.Notify(from, syscall.Signal(s))
	}
	go func() {
		for s := range from {
			atomic.AddUint32(&counts[s.(syscall.Signal)], 1)
			atomic.OrUint64(&arrived, uint64(SetOf(Signal(s.(syscall.Signal)))))
			Wake()
		}
	}()
}

// Wake has Next return, with or without a signal. Anybody may call it.
func Wake() {
	if atomic.SwapUint32(&asleep, 0) == 1 {
		syscall.RawSyscall(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), futexWake, 1)
	}
}

// burst is how many signals Unblocked stands. With as many it would take 10 ms.
const burst = 10_000

// Unblocked calls f while all signals get through to this thread and stay so: who
// is started by it inherits none that is blocked. (Until that one is executed it
// shares our memory, and Go has not reset all of its handlers. What is sent to it
// then we note, and pass on to it.) The loop's thread is meant.
func Unblocked(f func()) {
	if !entrySeen {
		f()
		return
	}
	atomic.StoreInt64(&open, burst)
	unblock()
	f()
	atomic.StoreInt64(&open, 0)
}

func unblock() {
	var none uint64
	const setMask = 2 // SIG_SETMASK
	syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0)
}

// taken is what Next has yet to return, and before that turn as often as due says.
var (
	taken Set
	turn  Signal
	due   uint32
)

// Next is a signal that has arrived. Where there is none it waits for one until
// then, or for ever if until is zero, and returns 0 if none came; it may return
// 0 earlier. What came at one time is in the order of the numbers, as with
// sigtimedwait(2). Only the loop calls Next.
func Next(until time.Time) Signal {
	if s := take(); s != 0 {
		return s
	}
	if entrySeen {
		unblock()
	}
	atomic.StoreUint32(&asleep, 1)
	if s := take(); s != 0 {
		return s
	}
	sleep(until)
	return take()
}

// take is a signal that has arrived, or 0. All that came at one time have their
// turn before any that comes later. Standard signals count once.
func take() Signal {
	if taken == 0 && due == 0 {
		taken = Set(atomic.SwapUint64(&arrived, 0))
	}
	for due == 0 {
		if taken == 0 {
			return 0
		}
		turn = Signal(bits.TrailingZeros64(uint64(taken)) + 1)
		taken = taken.Without(SetOf(turn))
		due = atomic.SwapUint32(&counts[turn], 0) // 0 where it was counted just before it was noted
		if turn < 32 {
			due = min(due, 1)
		}
	}
	due--
	return turn
}

// See futex(2); the operations are private to the process.
const (
	futexWait      = 128        // FUTEX_WAIT, whose timeout is relative
	futexWake      = 129        // FUTEX_WAKE
	futexWaitUntil = 137        // FUTEX_WAIT_BITSET, whose timeout is absolute, by CLOCK_MONOTONIC
	anyWaker       = 0xffffffff // FUTEX_BITSET_MATCH_ANY
	monotonic      = 1          // CLOCK_MONOTONIC, as in time.Time
)

// moment is how long the loop sleeps lightly after it was busy.
const moment = 2 * time.Millisecond

// sleep waits until then, at most a year, while asleep is 1. A busy loop is soon busy
// again, so the first wait is short and hidden from Go's scheduler: giving up the
// processor and getting it back costs more than the work for one signal.
//
// The second wait ends at an absolute time. The process may be stopped or frozen for any
// length of time before the kernel sees the call; a timeout computed before that and
// counted from after it would miss the deadline by as much.
func sleep(until time.Time) {
	if entrySeen { // otherwise the relay needs the processor
		left := untilThen(until)
		light := syscall.NsecToTimespec(int64(min(left, moment)))
		_, _, errno := syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), futexWait, 1, uintptr(unsafe.Pointer(&light)), 0, 0)
		if errno != syscall.ETIMEDOUT || left <= moment {
			return
		}
	}
	op, limit := timeout(until)
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), op, 1, uintptr(unsafe.Pointer(&limit)), 0, anyWaker)
}

// timeout is the operation that waits until then, and its argument: an absolute time, or
// the time left where a seccomp profile denies clock_gettime(2).
func timeout(until time.Time) (op uintptr, limit syscall.Timespec) {
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&limit)), 0)
	left := int64(untilThen(until))
	if errno != 0 {
		return futexWait, syscall.NsecToTimespec(left)
	}
	return futexWaitUntil, syscall.NsecToTimespec(limit.Nano() + left)
}

// untilThen is the time left, or a year if until is zero.
func untilThen(until time.Time) time.Duration {
	if until.IsZero() {
		return 365 * 24 * time.Hour
	}
	return max(0, time.Until(until))
}
