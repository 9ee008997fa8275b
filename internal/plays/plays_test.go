package plays

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// TestJudge: the verdict of a signal, and that of the remote twin; "!" is one that no documented limit explains.
func TestJudge(t *testing.T) {
	limits := map[string][]string{"near": {"early", "near", "words"}}
	for _, cells := range tables.Rows(`
		# options | the last answer | the signal | lost requests | verdicts
		                   | 3s  | 3s     | 0 | right
		                   | 3s  | 2999ms | 0 | early!
		# the server gives the answer
		graceful           | 3s  | 2s     | 0 | right
		                   | 3s  | 7s     | 1 | early!
		graceful           | 3s  | 7s     | 1 | early!
		                   | 3s  | 8s     | 0 | right
		                   | 3s  | 8001ms | 0 | late!
		graceful           | 3s  | 9s     | 0 | late!
		cut=2              | 3s  | 7s     | 2 | right
		cut=2              | 3s  | 7s     | 3 | early!
		                   | -3s | 0s     | 0 | right
		                   | -3s | -1ms   | 0 | early!
		                   | -3s | 5001ms | 0 | late!
		--quiet-for=1500ms | 3s  | 5501ms | 0 | late!
		slack=10s          | 2s  | 12s    | 0 | right
		slack=10s          | 2s  | 12001ms | 0 | late!
		by=20s             | 2s  | 20001ms | 0 | late!
		from=48s by=50s    | 2s  | 47999ms | 0 | early!
		from=48s by=50s    | 2s  | 50s    | 0 | right
		far limit=near     | 3s  | 3s     | 0 | right right
		far limit=near     | 3s  | 2s     | 0 | early early!
		far limit=near     | 3s  | 9s     | 0 | late! late!
	`) {
		var got []string
		for _, c := range parseRow([]string{"", "", ":", cells[0]}, limits, nil) {
			e, l := c.Window(Duration(cells[1]))
			v := c.Judge(Moments{Signal: Duration(cells[2]), E: e, L: l, Lost: Number(cells[3])})
			got = append(got, string(v)+map[bool]string{true: "!"}[c.Wrong(v)])
		}
		if got := strings.Join(got, " "); got != cells[4] {
			t.Errorf("%q: %s", cells, got)
		}
	}
}

// TestMoments: clients take their turns within a period, and none begins at its end.
func TestMoments(t *testing.T) {
	p := Parse("2x -2s..500ms/1s new tcp: close", nil)[0]
	want := []time.Duration{-1500 * ms, -500 * ms}
	if got := slices.Collect(p.Moments(1)); !slices.Equal(got, want) {
		t.Errorf("the second client begins at %v, want %v", got, want)
	}
}
