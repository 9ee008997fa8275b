//go:build amd64 || arm64

package sig

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// TestFaults: a fault of our own is Go's to see to, and what looks like one but
// was sent is noted. (In tests os/signal catches all else.)
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
		t.Error("a fault goes unseen")
	}
	for range 3 {
		syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGSEGV)
		if s := take(); s != Signal(syscall.SIGSEGV) {
			t.Errorf("took %v, which was not sent", s)
		}
	}
}
