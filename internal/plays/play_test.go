package plays

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

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
