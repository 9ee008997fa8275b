package sig

import "math/bits"

// Set is a set of signals; the zero value is empty.
type Set uint64

// Standard is the set of the standard signals, which have names and are not queued.
const Standard Set = 1<<31 - 1

// Internal is the set of 32 and 33, with which the C library speaks to the threads of
// its own process; see nptl(7). Elsewhere they end a program.
const Internal Set = 1<<31 | 1<<32

// SetOf is the set of the given signals.
func SetOf(list ...Signal) Set {
	var set Set
	for _, s := range list {
		set = set.With(s)
	}
	return set
}

// Has reports whether s is in the set.
func (set Set) Has(s Signal) bool { return s >= 1 && s <= Max && set&(1<<(s-1)) != 0 }

// With is the set and s.
func (set Set) With(s Signal) Set { return set | 1<<(s-1) }

// Without is the set without the signals of other.
func (set Set) Without(other Set) Set { return set &^ other }

// All yields the signals of the set in the order of their numbers.
func (set Set) All(yield func(Signal) bool) {
	for rest := uint64(set); rest != 0; rest &= rest - 1 {
		if !yield(Signal(bits.TrailingZeros64(rest) + 1)) {
			return
		}
	}
}

// Catchable is every signal that can arrive; Uncatchable gives the reasons for
// those that cannot. CHLD is caught too, but is ours.
func Catchable() Set {
	set := SetOf(CHLD)
	for s := Signal(1); s <= Max; s++ {
		if Uncatchable(s) == "" {
			set = set.With(s)
		}
	}
	return set
}
