package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// TestStrip: a column is drawn once all its requests have ended, as bad if a request
// failed, and the marks of the stop stand under the row.
func TestStrip(t *testing.T) {
	const ms = time.Millisecond
	began := time.Now()
	for name, c := range map[string]struct {
		failed     []int // by number
		stop, lag  float64
		row, below string
	}{
		"all is well": {nil, 350, 200, "......", " | |process gone\n | balancer stops sending\n TERM"},
		"at once":     {[]int{3, 4, 6}, 1, 300, ".xxx..", " |  balancer stops sending\n TERM, process gone"},
	} {
		var out strings.Builder
		s := &strip{out: &out, good: ".", bad: "x", each: 2}
		s.begin(began)
		failed := map[int]bool{}
		for _, n := range c.failed {
			failed[n] = true
		}
		// Eleven requests, in each column the second before the first.
		for _, n := range []int{1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 10} {
			k := load.Answered
			if failed[n] {
				k = load.Status5
			}
			drawn := s.drawn
			s.add(result{planned: began.Add(time.Duration(n) * column / 2), kind: k})
			if n%2 == 1 && s.drawn > drawn {
				t.Errorf("%s: column %d is drawn before it has ended", name, n/2)
			}
		}
		s.end(&stop{began: began.Add(120 * ms), StopMS: c.stop, drawn: drawn{}, LagMS: c.lag})
		want := "\n  " + c.row + "\n  " + strings.ReplaceAll(c.below, "\n", "\n  ") + "\n"
		if out.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, &out, want)
		}
	}
}
