// Package tally has the words between the load and who reads it.
package tally

import (
	"fmt"
	"strings"
)

// Kind says how a request ended.
type Kind string

// Answered is well; the others count as failed.
const (
	Answered Kind = "answered"
	Refused  Kind = "refused"
	Reset    Kind = "reset"
	Cut      Kind = "cut" // ended before the whole answer
	Status   Kind = "bad status"
	Timeout  Kind = "timed out"
	Lost     Kind = "unreachable" // the network says that nobody is there
	Other    Kind = "other"
)

// Tally is what the load prints each second, as a line of JSON.
type Tally struct {
	Sent    int          `json:"sent"`    // requests begun,
	Settled int          `json:"settled"` // so many of which, the first ones, have ended
	Kinds   map[Kind]int `json:"kinds"`
	Slow    int          `json:"slow"`    // answered, but only after more than a second
	LateMS  int          `json:"late_ms"` // the longest that the load was behind its plan
	Load    float64      `json:"load"`    // the node's highest load average
}

// Ended is the number of requests that have.
func (t *Tally) Ended() (n int) {
	for _, k := range t.Kinds {
		n += k
	}
	return n
}

// Failed is the number of those that failed.
func (t *Tally) Failed() int { return t.Ended() - t.Kinds[Answered] }

// Add adds another run's.
func (t *Tally) Add(other *Tally) {
	if t.Kinds == nil {
		t.Kinds = map[Kind]int{}
	}
	for kind, n := range other.Kinds {
		t.Kinds[kind] += n
	}
	t.Slow += other.Slow
	t.LateMS, t.Load = max(t.LateMS, other.LateMS), max(t.Load, other.Load)
}

// How says what kinds of failures there are: "12 refused, 3 timed out".
func (t *Tally) How() string {
	var parts []string
	for _, kind := range []Kind{Refused, Reset, Cut, Status, Timeout, Lost, Other} {
		if n := t.Kinds[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}
