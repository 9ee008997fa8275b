//go:build amd64 || arm64

package sigcatch

import (
	"syscall"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Waking Go's scheduler costs twenty times as much as reaping an orphan: sysmon wakes, other
// threads look for work, and sysmon ticks until the loop waits again. So wait reaps orphans
// between entersyscall and exitsyscall, where the runtime takes the loop for a goroutine in a
// system call. The code in between must be nosplit, may use neither the heap nor a write
// barrier, and not sync/atomic either, whose version for the race detector needs a P.
//
// The loop alone reaps, as ever: wait runs in Next, where the loop is about to signal nobody. A
// child is looked at first, and reaped only if nobody awaits it, so the PIDs of awaited
// children stay theirs until the loop has been told.

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// rearm sets asleep to 1, atomically: if a handler, or Wake, has found a 0 there and wakes
// nobody, the caller now sees what it noted.
func rearm()

// maxRounds is how often wait may be woken by orphans before it returns. The kernel compares
// asleep before it looks at the time, so in a storm of orphans a wait may never time out.
const maxRounds = 1000

// wait waits until asleep is 0 or the time has come, and meanwhile reaps orphans, unless
// awaited is zero. A CHLD stays in arrived even if all the children that it stood for have been
// reaped: one too many is harmless.
//
//go:nosplit
//go:norace
func wait(until syscall.Timespec, awaited [2]int) {
	entersyscall()
	for range maxRounds {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), futexWaitUntil, 1,
			uintptr(unsafe.Pointer(&until)), 0, anyWaker)
		if errno == syscall.ETIMEDOUT || awaited[0] == 0 || !onlyChildren() {
			break
		}
		rearm()
		unblock() // after rearm: a handler that now masks its signal again also resets asleep
		if !onlyChildren() || !reapOrphans(awaited) {
			break
		}
	}
	exitsyscall()
}

// onlyChildren reports whether CHLD and nothing else has arrived.
//
//go:nosplit
//go:norace
func onlyChildren() bool { return arrived == 1<<(sig.CHLD-1) && woken == 0 }

// siginfo is what waitid(2) writes, and pidField the index of si_pid.
var siginfo [32]int32

const pidField = 4

// reapOrphans reaps children that have ended, and takes note of those that have stopped or
// continued, up to one that is awaited. It reports whether there is none.
//
//go:nosplit
//go:norace
func reapOrphans(awaited [2]int) bool {
	const (
		anyChild = 0 // P_ALL
		look     = syscall.WEXITED | syscall.WSTOPPED | syscall.WCONTINUED | syscall.WNOHANG | syscall.WNOWAIT
		reap     = syscall.WUNTRACED | syscall.WCONTINUED | syscall.WNOHANG
	)
	for {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_WAITID, anyChild, 0,
			uintptr(unsafe.Pointer(&siginfo)), look, 0, 0)
		pid := int(siginfo[pidField])
		switch {
		case errno != 0: // no children, or a sandbox
			return false
		case pid == 0:
			return true
		case pid == awaited[0] || pid == awaited[1]:
			return false
		}
		reaped, _, _ := syscall.RawSyscall6(syscall.SYS_WAIT4, uintptr(pid), 0, reap, 0, 0, 0)
		if int(reaped) != pid {
			return false
		}
	}
}
