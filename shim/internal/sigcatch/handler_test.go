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
		syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGSEGV)
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
	defer unblock() // the handler masks URG once it is noted
	unblock()       // and forget: an URG of an earlier run may have come to this thread
	taken()
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

// TestFromOutside: a signal is from outside of the PID namespace if a process sent the signal
// (si_code is not positive) and the process has no id in the namespace (si_pid is 0).
func TestFromOutside(t *testing.T) {
	noting, _, _ := handlers()
	install(t, sig.QUIT, noting)
	defer unblock()
	type siginfo struct {
		number, errno, code, _ int32
		pid                    int32
		_                      [27]int32
	}
	const user, queue, kernel = 0, -1, 0x80 // SI_USER, SI_QUEUE, SI_KERNEL
	for _, c := range []struct {
		code, pid int32
		want      bool
	}{{user, 0, true}, {user, 7, false}, {queue, 0, true}, {kernel, 0, false}} {
		info := siginfo{number: int32(sig.QUIT), code: c.code, pid: c.pid}
		_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_TGSIGQUEUEINFO, uintptr(syscall.Getpid()), uintptr(syscall.Gettid()), uintptr(sig.QUIT), uintptr(unsafe.Pointer(&info)), 0, 0)
		if s := taken(); errno != 0 || s != sig.QUIT || FromOutside(s) != c.want {
			t.Errorf("%+v: took %v (%v), from outside: %v", c, s, errno, FromOutside(s))
		}
		unblock()
	}
}
