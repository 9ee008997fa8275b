package init_test

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/e2e/box"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestDeadlineAfterStall stops lameduck at the worst moment, between the computation of a
// timeout and the wait, until the next step is overdue: a paused container, a frozen cgroup
// or a suspended machine. The step must follow at once, not after the rest of the timeout.
func TestDeadlineAfterStall(t *testing.T) {
	t.Parallel()
	const step = 3 * time.Second
	b := box.Setup{Outside: true}.Boot(t, "--stop-schedule=TERM/3/KILL", "sh", "-c", `trap "" TERM; echo ready; read line`)
	b.Ready()
	stall(t, b, step+100*time.Millisecond)
	released := time.Now()
	b.WantExit(128 + int(sig.KILL))
	if late := time.Since(released); late > step/2 {
		t.Errorf("KILL came %v after the stall, want at once", late)
	}
}

// stall sends TERM and traces lameduck's loop. When TERM has been passed on and the first
// short sleep afterwards has ended, stall keeps the loop stopped for the duration.
func stall(t *testing.T, b *box.Box, duration time.Duration) {
	t.Helper()
	runtime.LockOSThread() // ptrace(2) knows the tracer by its thread
	defer runtime.UnlockOSThread()
	pid := b.Pid()
	if err := unix.PtraceSeize(pid); err != nil {
		t.Skipf("cannot trace a child: %v", err)
	}
	defer unix.PtraceDetach(pid)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(unix.PtraceInterrupt(pid))
	waitTraced(t, pid)
	check(unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESYSGOOD))
	b.Stop()
	sentTERM := false   // the time of the next step is fixed
	shortSleep := false // the current system call is the short sleep
	deliver := 0        // the signal to pass on to lameduck
	for {
		check(unix.PtraceSyscall(pid, deliver))
		stopped := waitTraced(t, pid)
		deliver = 0
		if stopped != unix.SIGTRAP|0x80 { // not a system call
			if stopped != unix.SIGTRAP {
				deliver = int(stopped)
			}
			continue
		}
		call := syscallInfo(t, pid)
		switch entry := call.op == unix.PTRACE_SYSCALL_INFO_ENTRY; {
		case entry && call.number == unix.SYS_KILL && call.args[1] == uint64(unix.SIGTERM):
			sentTERM = true
		case entry:
			shortSleep = sentTERM && call.isFutexSleep(t, pid, 2*time.Millisecond)
		case shortSleep && -int64(call.number) == int64(unix.ETIMEDOUT):
			time.Sleep(duration) // the stall itself
			return
		}
	}
}

// waitTraced waits until the tracee stops, and returns the signal of the stop.
func waitTraced(t *testing.T, pid int) unix.Signal {
	t.Helper()
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || !status.Stopped():
			t.Fatalf("lameduck has not stopped for the tracer: status %#x, %v", status, err)
		default:
			return status.StopSignal()
		}
	}
}

// tracedCall is struct ptrace_syscall_info of ptrace(2). At the entry of a system call the
// structure has the call's number and arguments, at the exit the result in place of the
// number.
type tracedCall struct {
	op     uint8
	_      [3]uint8
	_      uint32
	_      [2]uint64
	number uint64
	args   [6]uint64
}

func syscallInfo(t *testing.T, pid int) (call tracedCall) {
	t.Helper()
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(pid), unsafe.Sizeof(call), uintptr(unsafe.Pointer(&call)), 0, 0)
	if errno != 0 {
		t.Skipf("cannot read the system calls of a traced process: %v", errno)
	}
	return call
}

// isFutexSleep reports whether the call waits for a futex with exactly this timeout.
func (c *tracedCall) isFutexSleep(t *testing.T, pid int, want time.Duration) bool {
	t.Helper()
	const waitPrivate = 128
	if c.number != unix.SYS_FUTEX || c.args[1] != waitPrivate || c.args[3] == 0 {
		return false
	}
	var timeout unix.Timespec
	if _, err := unix.PtracePeekData(pid, uintptr(c.args[3]), unsafe.Slice((*byte)(unsafe.Pointer(&timeout)), unsafe.Sizeof(timeout))); err != nil {
		t.Fatal(err)
	}
	return timeout.Nano() == int64(want)
}
