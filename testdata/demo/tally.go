package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	column    = 100 * time.Millisecond
	columns   = int(length / column)
	perColumn = int(column / period)
	total     = columns * perColumn
)

// tally counts how requests ended, in all and per column of time.
type tally struct {
	ended int
	kinds map[kind]int
	inCol [columns]int
	bad   [columns]bool
	drawn int
}

// add counts a result, and returns the columns that are complete by it.
func (t *tally) add(r result) (complete []bool) {
	if t.kinds == nil {
		t.kinds = map[kind]int{}
	}
	i := r.number / perColumn
	t.ended++
	t.kinds[r.kind]++
	t.inCol[i]++
	t.bad[i] = t.bad[i] || r.kind != answered
	from := t.drawn
	for t.drawn < columns && t.inCol[t.drawn] == perColumn {
		t.drawn++
	}
	return t.bad[from:t.drawn]
}

func (t *tally) failed() int { return t.ended - t.kinds[answered] }

// String says how many failed, and how: "149 failed (148 refused, 1 cut)".
func (t *tally) String() string {
	var kinds []string
	for _, k := range []kind{refused, cut, timeout} {
		if t.kinds[k] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", t.kinds[k], k))
		}
	}
	if kinds == nil {
		return "0 failed"
	}
	return fmt.Sprintf("%d failed (%s)", t.failed(), strings.Join(kinds, ", "))
}
