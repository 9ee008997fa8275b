package sig

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNames: names and numbers agree with package unix.
func TestNames(t *testing.T) {
	for s := Signal(1); s <= 31; s++ {
		if num := unix.SignalNum("SIG" + s.String()); num != syscall.Signal(s) {
			t.Errorf("%d is called %v, which is %d in package unix", int(s), s, int(num))
		}
	}
}
