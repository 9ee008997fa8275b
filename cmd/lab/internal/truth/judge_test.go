package truth

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name     string
		m        moments
		graceful bool
		want     verdict
	}{
		{"between", moments{Signal: 7 * s, E: 3 * s, L: 8 * s}, false, right},
		{"at the last answer", moments{Signal: 3 * s, E: 3 * s, L: 8 * s}, false, right},
		{"before the last answer", moments{Signal: 3*s - ms, E: 3 * s, L: 8 * s}, false, early},
		{"before the last answer, which a graceful server gave", moments{Signal: 2 * s, E: 3 * s, L: 8 * s}, true, right},
		{"in time, but a request was lost", moments{Signal: 7 * s, E: 3 * s, L: 8 * s, Lost: 1}, false, early},
		{"graceful, but a request was lost", moments{Signal: 7 * s, E: 3 * s, L: 8 * s, Lost: 1}, true, early},
		{"at the latest moment", moments{Signal: 8 * s, E: 3 * s, L: 8 * s}, false, right},
		{"after the latest moment", moments{Signal: 8*s + ms, E: 3 * s, L: 8 * s}, false, late},
		{"graceful, and late", moments{Signal: 9 * s, E: 3 * s, L: 8 * s}, true, late},
		{"as many requests were lost as may be", moments{Signal: 7 * s, E: 3 * s, L: 8 * s, Lost: 2, MayCut: 2}, false, right},
		{"more requests were lost than may be", moments{Signal: 7 * s, E: 3 * s, L: 8 * s, Lost: 3, MayCut: 2}, false, early},
		{"too late, and a request was lost at the ceiling", moments{Signal: 49 * s, E: 3 * s, L: 8 * s, Lost: 1}, false, early},
	} {
		if got := test.m.judge(test.graceful); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name string
		c    truthCase
		last time.Duration
		e, l time.Duration
	}{
		{"the default silence", truthCase{}, 3 * s, 3 * s, 8 * s},
		{"the last answer came before TERM", truthCase{}, -3 * s, 0, 5 * s},
		{"a given silence", truthCase{flags: []string{"--quiet-for=1500ms"}}, 3 * s, 3 * s, 5500 * ms},
		{"a given silence in seconds", truthCase{flags: []string{"--quiet-for=6"}}, 0, 0, 7 * s},
		{"slack", truthCase{slack: 10 * s}, 2 * s, 2 * s, 12 * s},
		{"by", truthCase{by: 20 * s}, 2 * s, 2 * s, 20 * s},
		{"notBefore", truthCase{notBefore: 48 * s, by: 50 * s}, 2 * s, 48 * s, 50 * s},
	} {
		e, l := test.c.window(test.last)
		if e != test.e || l != test.l {
			t.Errorf("%s: %v to %v, want %v to %v", test.name, e, l, test.e, test.l)
		}
	}
}

func TestWrong(t *testing.T) {
	marked := truthCase{limit: limit{words: "x", deviates: early}}
	for _, test := range []struct {
		c    truthCase
		v    verdict
		want bool
	}{
		{truthCase{}, right, false},
		{truthCase{}, early, true},
		{truthCase{}, late, true},
		{marked, right, false},
		{marked, early, false},
		{marked, late, true},
	} {
		if got := test.c.wrong(test.v); got != test.want {
			t.Errorf("limit %q: %s is wrong: %v, want %v", test.c.deviates, test.v, got, test.want)
		}
	}
}
