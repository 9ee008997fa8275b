package plays

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestJudge has a row that expects the signal from E, 3 s, to L, 8 s.
func TestJudge(t *testing.T) {
	for _, test := range []struct {
		options string
		signal  time.Duration
		lost    int
		want    Verdict
	}{
		{"", 3 * s, 0, Right},         // at the last answer
		{"", 3*s - ms, 0, Early},      // before it
		{"graceful", 2 * s, 0, Right}, // before it, but the server gave it
		{"", 7 * s, 1, Early},         // in time, but a request was lost
		{"graceful", 7 * s, 1, Early}, // the same
		{"", 8 * s, 0, Right},         // at the latest moment
		{"", 8*s + ms, 0, Late},       // after it
		{"graceful", 9 * s, 0, Late},  // the same
		{"cut=2", 7 * s, 2, Right},    // as many requests were lost as may be
		{"cut=2", 7 * s, 3, Early},    // more were lost
	} {
		c := parseRow([]string{"", "", ":", test.options}, nil, nil)[0]
		m := Moments{Signal: test.signal, E: 3 * s, L: 8 * s, Lost: test.lost}
		if got := c.Judge(m); got != test.want {
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
		if e, l := c.Window(test.last); e != test.e || l != test.l {
			t.Errorf("%q: %v to %v, want %v to %v", test.options, e, l, test.e, test.l)
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
