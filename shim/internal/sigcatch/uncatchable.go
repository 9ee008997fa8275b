package sigcatch

import (
	"cmp"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// Never returns the reason why no lameduck ever catches s, or "" if one can.
func Never(s sig.Signal) string {
	switch s {
	case sig.KILL, sig.STOP:
		return "the kernel lets no program catch it"
	case sig.CHLD:
		return "lameduck itself needs it to reap"
	}
	return ""
}

// Uncatchable returns the reason why this build never catches s, or "" if it can.
func Uncatchable(s sig.Signal) string { return cmp.Or(Never(s), uncatchable(s)) }

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
