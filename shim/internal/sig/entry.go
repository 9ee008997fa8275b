//go:build amd64 || arm64

package sig

import (
	"runtime"
	"syscall"
	"unsafe"
)

// For vet: only the kernel calls these.
func entry()
func handler()
func faultHandler()

// handlers are two of struct sigaction, as the kernel has it: one whose handler
// notes the signal, and one whose handler leaves what the kernel sent to Go's.
func handlers() (noting, faulting uintptr)

// goHandler is Go's handler of faults.
var goHandler uintptr

// handle has our own handlers take every signal, and opens this thread for them:
// it is the loop's from now on, while the others block all that Go lets them.
func handle() {
	runtime.LockOSThread()
	noting, faulting := handlers()
	var gos [4]uintptr // struct sigaction, the handler first
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), 0, uintptr(unsafe.Pointer(&gos)), 8, 0, 0)
	goHandler = gos[0]
	spared := Internal & Set(entryIgnored) // posix_spawn(3) leaves them so
	for s := range Catchable().Without(spared).All {
		handler := noting
		if faults.Has(s) {
			handler = faulting
		}
		syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), handler, 0, 8, 0, 0)
	}
	unblock()
}
