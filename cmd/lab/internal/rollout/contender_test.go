package rollout

import (
	"slices"
	"testing"
)

// TestNamed: a part of names selects all contenders with such names, and a whole name
// selects no other contender.
func TestNamed(t *testing.T) {
	for word, want := range map[string][]string{
		"--until=quiet":          {"lameduck --until=quiet", "lameduck --until=quiet" + short, floored},
		"lameduck --until=quiet": {"lameduck --until=quiet"},
		"quiet-for=10ms":         nil,
		broken:                   {broken},
		sleepFor(5):              {sleepFor(5)},
	} {
		var got []string
		for _, c := range contenders() {
			if c.named(word) {
				got = append(got, c.name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q selects %q, want %q", word, got, want)
		}
	}
}

// TestScenes: every scene has servers, a contender without a hold, and the contenders of
// the claims.
func TestScenes(t *testing.T) {
	for _, s := range allScenes {
		if !slices.ContainsFunc(allServers(), func(other server) bool { return other.scene == s }) {
			t.Errorf("%s: no server", s)
		}
		want := map[scene][]string{
			steady: {"bare", sleepFor(14), "lameduck --until=quiet", "oracle"},
			kept:   {"bare", "tini", sleepFor(keptSleep), "lameduck --until=quiet", "lameduck --until=settled"},
			sparse: {"bare", "tini", sleepFor(5), "lameduck --until=quiet", "lameduck --until=quiet" + short, floored},
		}[s]
		for _, c := range contenders() {
			if c.plays(s) {
				want = slices.DeleteFunc(want, func(name string) bool { return name == c.name })
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: no %q", s, want)
		}
	}
}
