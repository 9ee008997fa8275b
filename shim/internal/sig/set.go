package sig

import "math/bits"

// Set is a set of signals; the zero value is empty.
type Set uint64

// Standard is the set of the standard signals, 1 to 31. The kernel does not queue them.
const Standard Set = 1<<31 - 1

// Internal is the set of 32 and 33, which the C library sends to the threads of its own
// process; see nptl(7). Their default action ends other programs.
const Internal Set = 1<<31 | 1<<32

// SetOf returns the set of the given signals.
func SetOf(list ...Signal) Set {
	var set Set
	for _, s := range list {
		set = set.With(s)
	}
	return set
}

// Has reports whether s is in the set.
func (set Set) Has(s Signal) bool { return s >= 1 && s <= Max && set&(1<<(s-1)) != 0 }

// With returns the set with s added.
func (set Set) With(s Signal) Set { return set | 1<<(s-1) }

// Without returns the set without the signals of other.
func (set Set) Without(other Set) Set { return set &^ other }

// All yields the signals of the set in ascending order.
func (set Set) All(yield func(Signal) bool) {
	for rest := uint64(set); rest != 0; rest &= rest - 1 {
		if !yield(Signal(bits.TrailingZeros64(rest) + 1)) {
			return
		}
	}
}
