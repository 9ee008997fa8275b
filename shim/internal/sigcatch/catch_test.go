package sigcatch

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestUncatchable: the kernel's two signals are never caught, and CHLD is lameduck's own;
// os/signal catches fewer signals than our handlers.
func TestUncatchable(t *testing.T) {
	want := sig.SetOf(sig.KILL, sig.STOP, sig.CHLD)
	if !Direct {
		want |= sig.SetOf(sig.PROF, 32, 33, sig.RTMin, sig.URG)
	}
	for s := sig.Signal(1); s <= sig.Max; s++ {
		why, caught := Uncatchable(s), catchable().Has(s)
		if (why != "") != want.Has(s) || caught != (why == "" || s == sig.CHLD) {
			t.Errorf("Uncatchable(%v) = %q, and it is caught: %v", s, why, caught)
		}
	}
}

// TestWakeFirst: a call of Wake before that of Next is not lost.
func TestWakeFirst(t *testing.T) {
	Wake()
	start := time.Now()
	if s := Next(start.Add(time.Minute), [2]int{}); s != 0 || time.Since(start) > 50*time.Second {
		t.Errorf("Next returned %v after %v", s, time.Since(start))
	}
	if woken != 0 { // a wait of Next says less: Go's runtime may interrupt it
		t.Error("one call of Wake ends two of Next")
	}
}

// TestTimeout: a wait ends at an absolute time, so that the process may be stopped, frozen or
// starved for any time before it begins to wait.
func TestTimeout(t *testing.T) {
	limit := timeout(time.Now().Add(time.Hour))
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	left := time.Duration(limit.Nano() - now.Nano())
	if left > time.Hour || left < time.Hour-time.Minute {
		t.Errorf("until %v from now, want an absolute time in an hour", left)
	}
}
