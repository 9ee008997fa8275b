package truth

import (
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// TestMissed: which stops of --close-idle miss goals, beside two stops at a lull that lost 20 requests.
func TestMissed(t *testing.T) {
	stop := func(held time.Duration, losses ...loss) *result {
		return &result{Moments: plays.Moments{Signal: held}, Losses: losses}
	}
	fresh, begun := loss{At: 4 * s}, loss{At: 4 * s, Begun: true}
	lull := &row{results: []*result{stop(8*s, make([]loss, 12)...), stop(8*s, make([]loss, 8)...)}}
	for want, stops := range map[string][]*result{
		"":                     {stop(8*s, fresh), stop(5 * s), stop(20 * s)},
		"4 against 20 in 2":    {stop(8*s, fresh, fresh, fresh, fresh), stop(8 * s), stop(8 * s)},
		"cut":                  {stop(8*s, begun)},
		"2 against 20 in 2":    {stop(3*s, begun, begun)}, // at the signal
		"lost":                 {stop(8*s, fresh)},
		"cut, lost, held long": {stop(20*s, begun)},
	} {
		retries := strings.Contains(want, "lost")
		if got := (&row{results: stops}).figures().missed(retries, lull.figures()); got != want {
			t.Errorf("missed %q, want %q", got, want)
		}
	}
}

// TestJudge compares losses with what the servers have printed, and with what a race allows.
func TestJudge(t *testing.T) {
	kept := &trial{c: &plays.Row{Lag: s}, named: 3, lost: []loss{{Name: "order1"}, {Name: "order2"}}}
	r := &result{Losses: kept.lost}
	if err := kept.judge(r, "order1\nserved order3 order3\n"); err != nil {
		t.Error(err)
	}
	if r.Lost != 2 || r.Twice != 1 || !r.Losses[0].Begun || r.Losses[1].Begun {
		t.Errorf("%+v", r)
	}
	if kept.judge(&result{}, "nothing") == nil {
		t.Error("servers that have printed no name are believed")
	}
	race := &trial{c: &plays.Row{Race: true}, lost: []loss{{Raced: true}, {}}}
	r = &result{Losses: race.lost, Open: 2}
	race.judge(r, "")
	if r.Lost != 3 || r.Verdict != plays.Early {
		t.Errorf("%+v", r)
	}
}

func TestStallsLongest(t *testing.T) {
	signal := time.Now()
	late := []lateness{
		{signal.Add(-5 * s), 300 * ms},
		{signal.Add(-500 * ms), 7 * ms},
		{signal.Add(90 * ms), 60 * ms},
		{signal.Add(s), 200 * ms},
	}
	for precise, want := range map[bool]time.Duration{false: 300 * ms, true: 60 * ms} {
		w := &stalls{late: late}
		if got := w.longest(&plays.Row{Precise: precise}, signal); got != want {
			t.Errorf("precise %v: %v, want %v", precise, got, want)
		}
	}
}
