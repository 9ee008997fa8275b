package sigcatch

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Uncatchable returns the reason why this build never catches s, or "" if it can.
func Uncatchable(s sig.Signal) string { return cmp.Or(sig.Uncatchable(s), uncatchable(s)) }

// catchable returns the set of signals to catch: all but the uncatchable, and CHLD.
func catchable() sig.Set {
	set := sig.SetOf(sig.CHLD)
	for s := sig.Signal(1); s <= sig.Max; s++ {
		if Uncatchable(s) == "" {
			set = set.With(s)
		}
	}
	return set
}
