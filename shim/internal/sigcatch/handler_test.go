//go:build amd64 || arm64

package sigcatch

import (
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// install makes an action the one of a signal until the test ends. The thread stays the
// test's, and sends itself signals.
func install(t *testing.T, s sig.Signal, action uintptr) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	var before [4]uintptr
	set := func(now, before uintptr) {
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), now, before, 8, 0, 0); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(action, uintptr(unsafe.Pointer(&before)))
	t.Cleanup(func() { set(uintptr(unsafe.Pointer(&before)), 0) })
	goHandler = before[0]
	ownPID = int32(syscall.Getpid())
}

// TestFaults: a fault of the program reaches Go's handler; a sent SEGV is noted.
func TestFaults(t *testing.T) {
	_, faulting, _ := handlers()
	install(t, sig.SEGV, faulting)
	fault := func() (err any) {
		defer func() { err = recover() }()
		var nowhere *int
		*nowhere = 1
		return nil
	}
	if err := fault(); err == nil {
		t.Error("a nil dereference did not panic")
	}
	for range 3 {
		syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGSEGV)
		if s := take(); s != sig.SEGV {
			t.Errorf("took %v, want SEGV", s)
		}
	}
}

// TestOwnURG: an URG that the program sends to its own thread is Go's, by which Go's runtime
// preempts goroutines; any other URG is noted.
func TestOwnURG(t *testing.T) {
	_, _, urging := handlers()
	install(t, sig.URG, urging)
	defer unblock() // the handler masks URG once it is noted
	own := func() { syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGURG) }
	own()
	if s := take(); s != 0 {
		t.Errorf("took %v, which Go's runtime sent", s)
	}
	ownPID++
	own()
	if s := take(); s != sig.URG {
		t.Errorf("took %v, want the URG of another process", s)
	}
	unblock()
	ownPID--
	syscall.Kill(syscall.Getpid(), syscall.SIGURG)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if s := take(); s == sig.URG {
			return
		}
	}
	t.Error("an URG from kill(2) was not noted")
}
