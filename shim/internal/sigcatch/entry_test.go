//go:build amd64 || arm64

package sigcatch

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestFaults: a fault of the program reaches Go's handler; a sent SEGV is noted.
// (Without the entry point os/signal catches the other signals.)
func TestFaults(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, faulting := handlers()
	var before [4]uintptr
	action := func(now, before uintptr) {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), now, before, 8, 0, 0)
	}
	action(faulting, uintptr(unsafe.Pointer(&before)))
	defer func() { action(uintptr(unsafe.Pointer(&before)), 0) }()
	goHandler = before[0]

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
