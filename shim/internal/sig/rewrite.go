package sig

import (
	"fmt"
	"strings"
)

// Rewrite is a FROM:TO pair: the signal To is sent in place of From. A To of 0 drops From.
type Rewrite struct{ From, To Signal }

// ParseRewrite reads FROM:TO, where TO may be 0 to drop FROM. Whether FROM can be caught
// depends on the build: see sigcatch.Uncatchable.
func ParseRewrite(text string) (Rewrite, error) {
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return Rewrite{}, fmt.Errorf("invalid rewrite %q: give FROM:TO, as in TERM:USR1, or FROM:0 to drop FROM", text)
	}
	from, err := Parse(left)
	if err != nil {
		return Rewrite{}, err
	}
	if right == "0" {
		return Rewrite{From: from}, nil
	}
	to, err := Parse(right)
	return Rewrite{From: from, To: to}, err
}

// String returns the rewrite as the user writes it: "TERM:USR1", "HUP:0".
func (r Rewrite) String() string { return r.From.String() + ":" + r.To.String() }

// Rewrites maps each signal to its replacement; the zero value maps every signal to
// itself. A rewrite is applied once: rewrites do not chain.
type Rewrites struct {
	given Set
	to    [Max + 1]Signal
}

// Add adds a rewrite. A second rewrite of the same signal is an error.
func (rs *Rewrites) Add(r Rewrite) error {
	if rs.given.Has(r.From) {
		return fmt.Errorf("%v is rewritten twice: keep one", r.From)
	}
	rs.given = rs.given.With(r.From)
	rs.to[r.From] = r.To
	return nil
}

// Of returns the signal to send when s arrives; ok is false if s is dropped.
func (rs *Rewrites) Of(s Signal) (to Signal, ok bool) {
	if !rs.given.Has(s) {
		return s, true
	}
	return rs.to[s], rs.to[s] != 0
}

// Given returns the set of signals that are rewritten or dropped.
func (rs *Rewrites) Given() Set { return rs.given }
