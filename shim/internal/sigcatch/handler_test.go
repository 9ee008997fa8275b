//go:build amd64 || arm64

package sigcatch

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/testutil"
)

// install makes an action the one of a signal until the test ends. The thread stays the
// test's, and sends itself signals.
func install(t *testing.T, s sig.Signal, action uintptr) {
	runtime.LockOSThread()
	var before [4]uintptr
	saved := uintptr(unsafe.Pointer(&before))
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), action, saved, 8, 0, 0)
	goHandler = before[0]
	ownPID = int32(syscall.Getpid())
	t.Cleanup(func() {
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&before)), 0, 8, 0, 0)
		unblock() // the handler masks what it has noted
		runtime.UnlockOSThread()
	})
}

// sendOwn sends a signal to this thread.
func sendOwn(s sig.Signal) { syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.Signal(s)) }

// taken is take without the URGs of Go's runtime that TestOwnURG noted.
func taken() sig.Signal {
	s := take()
	for s == sig.URG {
		s = take()
	}
	return s
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
		sendOwn(sig.SEGV)
		if s := taken(); s != sig.SEGV {
			t.Errorf("took %v, want SEGV", s)
		}
	}
}

// TestOwnURG: an URG that the program sends to its own thread is Go's, by which Go's runtime
// preempts goroutines; any other URG is noted.
func TestOwnURG(t *testing.T) {
	_, _, urging := handlers()
	install(t, sig.URG, urging)
	unblock() // and forget: an URG of an earlier run may have come to this thread
	taken()
	sendOwn(sig.URG)
	if s := take(); s != 0 {
		t.Errorf("took %v, which Go's runtime sent", s)
	}
	ownPID++
	sendOwn(sig.URG)
	if s := take(); s != sig.URG {
		t.Errorf("took %v, want the URG of another process", s)
	}
	unblock()
	ownPID--
	syscall.Kill(syscall.Getpid(), syscall.SIGURG)
	testutil.Eventually(t, "an URG from kill(2) is noted", func() bool { return take() == sig.URG })
}

// TestSender: a signal is from a process if si_code is not positive, and then from outside of the
// PID namespace if the process has no id in it (si_pid is 0).
func TestSender(t *testing.T) {
	noting, _, _ := handlers()
	install(t, sig.QUIT, noting)
	type siginfo struct {
		number, errno, code, _ int32
		pid                    int32
		_                      [27]int32
	}
	const user, queue, kernel = 0, -1, 0x80 // SI_USER, SI_QUEUE, SI_KERNEL
	for info, want := range map[siginfo]bool{
		{code: user}:         true,
		{code: user, pid: 7}: false,
		{code: queue}:        true,
		{code: kernel}:       false,
	} {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_TGSIGQUEUEINFO, uintptr(syscall.Getpid()),
			uintptr(syscall.Gettid()), uintptr(sig.QUIT), uintptr(unsafe.Pointer(&info)), 0, 0)
		s := taken()
		isProcess, isOutside := Sender(s)
		if errno != 0 || s != sig.QUIT || isOutside != want || isProcess != (info.code != kernel) {
			t.Errorf("%+v: took %v (%v), from outside: %v, from a process: %v", info, s, errno, isOutside, isProcess)
		}
		unblock()
	}
}
