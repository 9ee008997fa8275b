package sigcatch

import (
	"testing"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// TestUncatchable: all signals but these are caught, and fewer where os/signal catches.
// CHLD is caught too, for lameduck itself.
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
