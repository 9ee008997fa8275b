//go:build amd64 || arm64

package sigcatch

import (
	"runtime"
	"syscall"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Declarations for vet: only the kernel calls these functions.
func entry()
func handler()
func faultHandler()

// growStack lets the stack of the goroutine grow to 32 KiB, as deep as the start needs, in
// one step. In steps of a factor of two, the runtime initializes a pool of stacks of every
// size on the way.
func growStack()

// handlers returns the addresses of two struct sigaction, as the kernel has them: the
// handler of the first notes the signal; the handler of the second passes faults on to
// Go's handler, and notes the rest.
func handlers() (noting, faulting uintptr)

// goHandler is the address of Go's handler, for faults.
var goHandler uintptr

// handle installs our handlers for every signal, and unblocks all signals in this thread:
// from now on this is the loop's thread. The other threads block all that Go lets them.
func handle() {
	growStack()
	runtime.LockOSThread()
	noting, faulting := handlers()
	var before [4]uintptr // struct sigaction, the handler first
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), 0, uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	goHandler = before[0]
	spared := sig.Internal & sig.Set(entryIgnored) // posix_spawn(3) leaves these ignored
	for s := range catchable().Without(spared).All {
		handler := noting
		if faults.Has(s) {
			handler = faulting
		}
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), handler, 0, 8, 0, 0)
	}
	unblock()
}
