package truth

import (
	"testing"
	"time"
)

// TestJudge has a row that expects the signal from E, 3 s, to L, 8 s.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		name         string
		signal       time.Duration
		lost, mayCut int
		graceful     bool
		want         verdict
	}{
		{"at the last answer", 3 * s, 0, 0, false, right},
		{"before the last answer", 3*s - ms, 0, 0, false, early},
		{"before the last answer, which a graceful server gave", 2 * s, 0, 0, true, right},
		{"in time, but a request was lost", 7 * s, 1, 0, false, early},
		{"graceful, but a request was lost", 7 * s, 1, 0, true, early},
		{"at the latest moment", 8 * s, 0, 0, false, right},
		{"after the latest moment", 8*s + ms, 0, 0, false, late},
		{"graceful, and late", 9 * s, 0, 0, true, late},
		{"as many requests were lost as may be", 7 * s, 2, 2, false, right},
		{"more requests were lost than may be", 7 * s, 3, 2, false, early},
	} {
		m := moments{Signal: test.signal, E: 3 * s, L: 8 * s, Lost: test.lost, MayCut: test.mayCut}
		if got := m.judge(test.graceful); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
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
