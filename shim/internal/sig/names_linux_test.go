package sig

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNames: names and numbers agree with packages unix and syscall.
func TestNames(t *testing.T) {
	for s := Signal(1); s <= 31; s++ {
		if num := unix.SignalNum("SIG" + s.String()); num != syscall.Signal(s) {
			t.Errorf("%d is called %v, which is %d in package unix", int(s), s, int(num))
		}
	}
	others := map[string]syscall.Signal{"IOT": syscall.SIGIOT, "CLD": syscall.SIGCLD, "POLL": syscall.SIGPOLL, "UNUSED": syscall.SIGUNUSED}
	for name, want := range others {
		if num, err := Parse(name); err != nil || num != Signal(want) {
			t.Errorf("%s is %d, want %d", name, int(num), int(want))
		}
	}
}
