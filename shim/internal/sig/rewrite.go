package sig

import (
	"fmt"
	"strings"
)

// Rewrite is one FROM:TO: send To where From arrives. To is 0 for "drop".
type Rewrite struct{ From, To Signal }

// ParseRewrite reads FROM:TO, where TO may be 0 to drop FROM.
func ParseRewrite(text string) (Rewrite, error) {
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return Rewrite{}, fmt.Errorf("%q is no rewrite: give FROM:TO, as in TERM:USR1, or FROM:0 to drop FROM", text)
	}
	from, err := Parse(left)
	if err != nil {
		return Rewrite{}, err
	}
	if why := Uncatchable(from); why != "" {
		return Rewrite{}, fmt.Errorf("%v never reaches lameduck to be rewritten: %s", from, why)
	}
	if right == "0" {
		return Rewrite{From: from}, nil
	}
	to, err := Parse(right)
	return Rewrite{From: from, To: to}, err
}

// String is the rewrite as it is given: "TERM:USR1", "HUP:0".
func (r Rewrite) String() string { return r.From.String() + ":" + r.To.String() }

// Rewrites says what becomes of each signal; the zero value changes nothing.
// A rewrite is applied once: there is no chaining.
type Rewrites struct {
	given Set
	to    [Max + 1]Signal
}

// Add puts one rewrite in; a second one of the same signal is an error.
func (rs *Rewrites) Add(r Rewrite) error {
	if rs.given.Has(r.From) {
		return fmt.Errorf("two rewrites of %v: keep one of them", r.From)
	}
	rs.given = rs.given.With(r.From)
	rs.to[r.From] = r.To
	return nil
}

// Of is what is sent where s arrives, and false where it is dropped.
func (rs *Rewrites) Of(s Signal) (to Signal, ok bool) {
	if !rs.given.Has(s) {
		return s, true
	}
	return rs.to[s], rs.to[s] != 0
}

// Given is the set of signals that are rewritten or dropped.
func (rs *Rewrites) Given() Set { return rs.given }
