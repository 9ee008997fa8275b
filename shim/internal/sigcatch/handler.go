//go:build amd64 || arm64

package sigcatch

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Direct reports whether our own handlers catch the signals, rather than os/signal, which
// needs two threads of the runtime's.
const Direct = true

// Plain reports whether the program was built without the linker flags of the Makefile.
func Plain() bool { return !entrySeen }

// uncatchable returns "": our handlers catch every signal.
func uncatchable(sig.Signal) string { return "" }

// Declarations for vet: only the kernel calls the functions.
func entry()
func handler()
func faultHandler()
func urgHandler()

// handlers returns the addresses of three struct sigaction, as the kernel has them. The
// first handler notes the signal. The others first pass signals on to Go's handler: faults
// of the program, and an URG that the program sent to itself.
func handlers() (noting, faulting, urging uintptr)

// goHandler is the address of Go's handler, and ownPID our process id.
var (
	goHandler uintptr
	ownPID    int32
)

// growStack lets the stack of the goroutine grow to 32 KiB, as deep as the start needs, in
// one step. In steps of a factor of two, the runtime initializes a pool of stacks of every
// size on the way.
func growStack()

// catch installs our handlers for every signal, and unblocks all signals in this thread:
// from now on this is the loop's thread. The other threads block all that Go lets them.
func catch() {
	growStack()
	runtime.LockOSThread()
	if !entrySeen {
		var before [4]uintptr // struct sigaction, the handler first
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), 0,
			uintptr(unsafe.Pointer(&before)), 8, 0, 0)
		goHandler = before[0]
	}
	ownPID = int32(os.Getpid())
	noting, faulting, urging := handlers()
	spared := sig.Internal & sig.Set(entryIgnored) // posix_spawn(3) leaves these ignored
	for s := range catchable().Without(spared).All {
		action := noting
		switch {
		case faults.Has(s):
			action = faulting
		case s == sig.URG:
			action = urging
		}
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), action, 0, 8, 0, 0)
	}
	unblock()
}
