package main

import (
	"errors"
	"fmt"
	"time"
)

// judge returns an error for each broken claim of the demo. The balancer sends by turns:
// half of the requests come to a replica that is gone.
func judge(rows []*row) error {
	bare, short := rows[0], rows[1]
	long, held := rows[2], rows[3]
	var broken []error
	claim := func(holds bool, format string, args ...any) {
		if !holds {
			broken = append(broken, fmt.Errorf("a claim is broken: "+format, args...))
		}
	}
	for _, r := range rows {
		all := r.sum()
		claim(all.Ended == len(r.Columns)*eachColumn, "%s: %d requests in %d columns of %d", r.Name, all.Ended, len(r.Columns), eachColumn)
	}
	claim(near(bare, lag), "%s: half of the requests of %v fail, found %d", bare.Name, lag, bare.sum().Failed)
	claim(near(short, lag-tooShort), "%s: half of the requests of %v fail, found %d", short.Name, lag-tooShort, short.sum().Failed)
	for _, r := range []*row{long, held} {
		claim(r.sum().Failed == 0, "%s: no request fails, found %d", r.Name, r.sum().Failed)
	}
	claim(held.GoneMS < long.GoneMS, "%s: gone sooner than with %s, found %s and %s", held.Name, long.Name, held.gone(), long.gone())
	return errors.Join(broken...)
}

// near reports whether half of the requests of a time failed, half a second more or less.
func near(r *row, d time.Duration) bool {
	const tolerance = perSecond / 4
	want := int(perSecond * d / time.Second / 2)
	found := r.sum().Failed
	return want-tolerance <= found && found <= want+tolerance
}
