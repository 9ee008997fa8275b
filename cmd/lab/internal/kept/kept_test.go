package kept

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
)

// TestRows: each row has a script, whose first line has its needs, and a client.
func TestRows(t *testing.T) {
	list := rows()
	if len(list) < 20 {
		t.Fatalf("%d rows", len(list))
	}
	for _, r := range list {
		r.missing()
		if !strings.HasPrefix(peers.Script(r.server[0]), "# needs") || len(r.thinks) == 0 || r.stop == 0 {
			t.Errorf("%s: no needs, times or signal", r.name)
		}
		if !slices.Contains(strings.Fields("tcp tls websocket http https h2c h2 grpc node java python3"), r.protocol) {
			t.Errorf("%s: no protocol %q", r.name, r.protocol)
		}
		if steps := fmt.Sprint(r.steps("t1n1", time.Millisecond)); !strings.Contains(steps, "t1n1") && !slices.Contains([]string{"node", "java", "python3"}, r.protocol) {
			t.Errorf("%s: no name in %s", r.name, steps)
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
