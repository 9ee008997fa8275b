package sigcatch

import (
	"testing"

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
		if why := Uncatchable(s); (why != "") != want.Has(s) {
			t.Errorf("Uncatchable(%v) = %q", s, why)
		}
		if has := catchable().Has(s); has != (!want.Has(s) || s == sig.CHLD) {
			t.Errorf("catchable has %v: %v", s, has)
		}
	}
}
