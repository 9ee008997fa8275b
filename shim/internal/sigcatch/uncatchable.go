package sigcatch

import "github.com/lameduck-init/lameduck/shim/internal/sig"

// preemption is "off" if the linker switched Go's asynchronous preemption off; see the
// Makefile. Otherwise the runtime sends itself thousands of URG a second, and os/signal
// cannot tell them from an URG sent by another process.
var preemption = "on"

// withoutEntry begins the reasons of a binary without the entry point.
const withoutEntry = "this binary was built without -E for the linker, or for another machine than amd64 and arm64, so "

// Uncatchable returns the reason why lameduck can never catch s, or "" if it can.
func Uncatchable(s sig.Signal) string {
	switch s {
	case sig.KILL, sig.STOP:
		return "the kernel lets no program catch it"
	case sig.CHLD:
		return "lameduck itself needs it to reap"
	case sig.URG:
		if preemption != "off" {
			return "this binary was built without -X runtime.godebugDefault=asyncpreemptoff=1, so Go's runtime uses it"
		}
	}
	if !entrySeen {
		switch s {
		case sig.PROF:
			return withoutEntry + "Go's runtime keeps it for profiling"
		case 32, 33, sig.RTMin:
			return withoutEntry + "Go's runtime leaves it to the C library's threads"
		}
	}
	return ""
}

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
