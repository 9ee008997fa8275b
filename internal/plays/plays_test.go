package plays

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/tables"
)

// TestJudge has a row that expects the signal from E, 3 s, to L, 8 s.
func TestJudge(t *testing.T) {
	for _, cells := range tables.Rows(`
		# options | the signal | lost requests | verdict
		         | 3s     | 0 | right
		         | 2999ms | 0 | early
		# the server gives the answer
		graceful | 2s     | 0 | right
		         | 7s     | 1 | early
		graceful | 7s     | 1 | early
		         | 8s     | 0 | right
		         | 8001ms | 0 | late
		graceful | 9s     | 0 | late
		cut=2    | 7s     | 2 | right
		cut=2    | 7s     | 3 | early
	`) {
		c := parseRow([]string{"", "", ":", cells[0]}, nil, nil)[0]
		m := Moments{Signal: Duration(cells[1]), E: 3 * s, L: 8 * s, Lost: Number(cells[2])}
		if got := c.Judge(m); string(got) != cells[3] {
			t.Errorf("%q: %s", cells, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, cells := range tables.Rows(`
		# options | the last answer | E and L
		                     | 3s  | 3s 8s
		                     | -3s | 0s 5s
		--quiet-for=1500ms   | 3s  | 3s 5.5s
		slack=10s            | 2s  | 2s 12s
		by=20s               | 2s  | 2s 20s
		from=48s by=50s      | 2s  | 48s 50s
	`) {
		c := parseRow([]string{"", "", ":", cells[0]}, nil, nil)[0]
		e, l := c.Window(Duration(cells[1]))
		if got := fmt.Sprint(e, " ", l); got != cells[2] {
			t.Errorf("%q: %s", cells, got)
		}
	}
}

// TestLimit has a row with a limit of near clients, which its remote twin does not have.
func TestLimit(t *testing.T) {
	limits := map[string][]string{"x": {"early", "near", "words"}}
	cases := parseRow([]string{"", "", ":", "far limit=x"}, limits, nil)
	for i, want := range []map[Verdict]bool{
		{Right: false, Early: false, Late: true},
		{Right: false, Early: true, Late: true},
	} {
		for v, wrong := range want {
			if cases[i].Wrong(v) != wrong {
				t.Errorf("remote %v: %s is wrong: %v, want %v", cases[i].Remote, v, !wrong, wrong)
			}
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
