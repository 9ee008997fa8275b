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

// Rewrites are applied once: they do not chain. The first one of a signal counts.
type Rewrites []Rewrite

// Of returns the signal to send when s arrives, 0 if s is dropped, and whether a rewrite says so.
func (list Rewrites) Of(s Signal) (to Signal, given bool) {
	for _, r := range list {
		if r.From == s {
			return r.To, true
		}
	}
	return s, false
}
