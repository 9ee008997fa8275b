package truth

import (
	"testing"
	"time"
)

// TestJudge has a row that expects the signal from E, 3 s, to L, 8 s.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		options string
		signal  time.Duration
		lost    int
		want    verdict
	}{
		{"", 3 * s, 0, right},         // at the last answer
		{"", 3*s - ms, 0, early},      // before it
		{"graceful", 2 * s, 0, right}, // before it, but the server gave it
		{"", 7 * s, 1, early},         // in time, but a request was lost
		{"graceful", 7 * s, 1, early}, // the same
		{"", 8 * s, 0, right},         // at the latest moment
		{"", 8*s + ms, 0, late},       // after it
		{"graceful", 9 * s, 0, late},  // the same
		{"cut=2", 7 * s, 2, right},    // as many requests were lost as may be
		{"cut=2", 7 * s, 3, early},    // more were lost
	} {
		c := parseRow([]string{"", "", ":", test.options}, nil, nil)[0]
		m := moments{Signal: test.signal, E: 3 * s, L: 8 * s, Lost: test.lost}
		if got := c.judge(m); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		options string
		last    time.Duration
		e, l    time.Duration
	}{
		{"", 3 * s, 3 * s, 8 * s},
		{"", -3 * s, 0, 5 * s},
		{"--quiet-for=1500ms", 3 * s, 3 * s, 5500 * ms},
		{"slack=10s", 2 * s, 2 * s, 12 * s},
		{"by=20s", 2 * s, 2 * s, 20 * s},
		{"from=48s by=50s", 2 * s, 48 * s, 50 * s},
	} {
		c := parseRow([]string{"", "", ":", test.options}, nil, nil)[0]
		if e, l := c.window(test.last); e != test.e || l != test.l {
			t.Errorf("%q: %v to %v, want %v to %v", test.options, e, l, test.e, test.l)
		}
	}
}

// TestLimit has a row with a limit of near clients, which its remote twin does not have.
func TestLimit(t *testing.T) {
	limits := map[string][]string{"x": {"early", "near", "words"}}
	cases := parseRow([]string{"", "", ":", "far limit=x"}, limits, nil)
	for i, want := range []map[verdict]bool{
		{right: false, early: false, late: true},
		{right: false, early: true, late: true},
	} {
		for v, wrong := range want {
			if cases[i].wrong(v) != wrong {
				t.Errorf("remote %v: %s is wrong: %v, want %v", cases[i].remote, v, !wrong, wrong)
			}
		}
	}
}
