package plays

import (
	"fmt"
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

func TestPlays(t *testing.T) {
	sessions := map[string]string{
		"hello": "expect welcome; ask $1",
		"both":  "-1s $1: get / & 2x -2s..500ms/1s new aside tcp: hello you; close",
	}
	all := Parse("both h2c", sessions)
	if got := fmt.Sprintf("%d %s %v", len(all), all[0].Protocol, all[0].Steps); got != "2 h2c [{get /}]" {
		t.Errorf("the first play is %s", got)
	}
	second := all[1]
	if want := "[{expect welcome} {ask you} {close }]"; fmt.Sprint(second.Steps) != want {
		t.Errorf("steps %v, want %s", second.Steps, want)
	}
	if !second.Renewed || !second.Aside || second.Clients != 2 {
		t.Errorf("words were lost: %+v", second)
	}
	want := []time.Duration{-1500 * ms, -500 * ms}
	if got := slices.Collect(second.Moments(1)); !slices.Equal(got, want) {
		t.Errorf("the second client begins at %v, want %v", got, want)
	}
}
