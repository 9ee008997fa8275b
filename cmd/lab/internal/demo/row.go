package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// row is the requests of a play, by planned time.
type row struct {
	Name    string  `json:"name"`
	How     string  `json:"how"`
	Columns []cell  `json:"columns"`
	GoneMS  float64 `json:"gone_ms"` // from the stop to the exit of the old replica

	mu       sync.Mutex // requests end beside each other
	each     int        // requests in a column
	finished bool
}

// cell is a column of a row.
type cell struct {
	Ended  int `json:"ended"`
	Failed int `json:"failed"`
}

// add records the end of a request.
func (r *row) add(planned time.Duration, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := int(planned / column)
	for len(r.Columns) <= i {
		r.Columns = append(r.Columns, cell{})
	}
	r.Columns[i].Ended++
	if !answered {
		r.Columns[i].Failed++
	}
}

func (r *row) finish(gone time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.GoneMS = float64(gone.Microseconds()) / 1000
	r.finished = true
}

// sum returns the numbers of all columns.
func (r *row) sum() (all cell) {
	for _, c := range r.Columns {
		all.Ended += c.Ended
		all.Failed += c.Failed
	}
	return all
}

func (r *row) gone() string { return fmt.Sprintf("%.1f s", r.GoneMS/1000) }

// nameWidth is the width of the names before the symbols.
const nameWidth = 10

// line returns the row as text: the columns in which all requests have ended, up to the
// first in which not all have.
func (r *row) line(s *symbols) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s", nameWidth, r.Name)
	for _, c := range r.Columns {
		if c.Ended < r.each {
			break
		}
		if c.Failed > 0 {
			b.WriteString(s.bad)
		} else {
			b.WriteString(s.good)
		}
	}
	if r.finished {
		b.WriteString(" gone after " + r.gone())
	}
	return b.String()
}

// symbols are the symbols of a column: without a failed request, and with a failed request.
type symbols struct{ good, bad string }

var (
	plain   = symbols{".", "x"}
	colored = symbols{"\x1b[32m.\x1b[0m", "\x1b[31mx\x1b[0m"}
)
