//go:build !amd64 && !arm64

package sigcatch

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Direct reports whether our own handlers catch the signals, rather than os/signal, which
// needs two threads of the runtime's.
const Direct = false

// preemption is "off" if the linker switched Go's asynchronous preemption off; see the
// Makefile. Otherwise the runtime sends itself thousands of URG a second, and os/signal
// cannot tell them from an URG sent by another process.
var preemption = "on"

// Plain reports whether the program was built without the linker flags of the Makefile.
func Plain() bool { return preemption != "off" }

const otherMachine = "this binary was built without handlers of its own, which amd64 and arm64 have, so "

// uncatchable returns the reason why os/signal does not pass s on, or "".
func uncatchable(s sig.Signal) string {
	switch s {
	case sig.URG:
		if Plain() {
			return "this binary was built without -X runtime.godebugDefault=asyncpreemptoff=1, " +
				"so Go's runtime uses the signal"
		}
	case sig.PROF:
		return otherMachine + "Go's runtime keeps the signal for profiling"
	case 32, 33, sig.RTMin:
		return otherMachine + "Go's runtime reserves the signal for the C library's threads"
	}
	return ""
}

// catch catches signals through os/signal. Never signal.Ignore: the command would inherit
// the disposition.
func catch() {
	from := make(chan os.Signal, 8192) // the runtime drops signals when the channel is full
	for s := range catchable().All {
		signal.Notify(from, syscall.Signal(s))
	}
	go func() {
		for s := range from {
			number := sig.Signal(s.(syscall.Signal))
			atomic.AddUint32(&counts[number], 1)
			atomic.OrUint64(&arrived, uint64(sig.SetOf(number)))
			Wake()
		}
	}()
}

// wait waits until asleep is 0 or the time has come. Here it reaps no orphans: every CHLD passes
// through a goroutine in any case.
func wait(until syscall.Timespec, _ [2]int) {
	syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&asleep)), futexWaitUntil, 1,
		uintptr(unsafe.Pointer(&until)), 0, anyWaker)
}
