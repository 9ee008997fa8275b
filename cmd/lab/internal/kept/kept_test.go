package kept

import (
	"strings"
	"testing"
)

// TestRows: each row has a script, whose first line has its needs, and a client.
func TestRows(t *testing.T) {
	list := rows()
	if len(list) < 20 {
		t.Fatalf("%d rows", len(list))
	}
	for _, r := range list {
		if !strings.HasPrefix(script(r.server[0]), "# needs") || len(r.thinks) == 0 {
			t.Errorf("%s: no needs, or no times", r.name)
		}
		r.missing()
		if r.client[0] == "raw" && wires[r.client[1]].ask == nil {
			t.Errorf("%s: no protocol %q", r.name, r.client[1])
		}
	}
}

// TestGoals: what is a miss.
func TestGoals(t *testing.T) {
	quick := []float64{8}
	lull := &figures{stops: 2, lost: [2][2]int{1: {5, 15}}}
	for want, f := range map[string]*figures{
		"":                                  {stops: 1, held: quick, lost: [2][2]int{{1}}},
		"2 against 20 in 2":                 {stops: 1, held: quick, lost: [2][2]int{{1}, {1}}},
		"cut":                               {stops: 1, held: quick, lost: [2][2]int{{0, 1}}},
		"held long":                         {stops: 1, held: []float64{5, 10}},
		"cut, 9 against 20 in 2, held long": {stops: 1, held: []float64{20}, lost: [2][2]int{{4, 5}}},
	} {
		if got := f.missed(false, lull); got != want {
			t.Errorf("missed %q, want %q", got, want)
		}
	}
	if got := (&figures{stops: 1, held: quick, lost: [2][2]int{1: {1}}}).missed(true, lull); got != "lost" {
		t.Errorf("missed %q of a client that retries", got)
	}
}
