package load

import (
	"fmt"
	"strings"
)

// Tally is what the load in a cluster prints each second, as a line of JSON.
type Tally struct {
	Sent    int          `json:"sent"`    // requests begun
	Settled int          `json:"settled"` // the first so many of Sent have ended
	Kinds   map[Kind]int `json:"kinds"`
	Slow    int          `json:"slow"`    // answered after more than a second
	LateMS  int          `json:"late_ms"` // the longest delay behind the plan
	Load    float64      `json:"load"`    // the node's highest load average
}

// Ended returns the number of requests that have ended.
func (t *Tally) Ended() (n int) {
	for _, k := range t.Kinds {
		n += k
	}
	return n
}

// Failed returns the number of requests that failed.
func (t *Tally) Failed() int { return t.Ended() - t.Kinds[Answered] }

// Summary lists the kinds of failures: "12 refused, 3 timeout".
func (t *Tally) Summary() string { return Summary(t.Kinds) }

// Summary lists the kinds of failures: "12 refused, 3 timeout".
func Summary(kinds map[Kind]int) string {
	var parts []string
	for _, kind := range Failures {
		if n := kinds[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}
