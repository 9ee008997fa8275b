package truth

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// TestTable checks the rows: unique names, the words of how-long.md, no limit or server
// without a row, there or in the table of lab kept, and the leads of the quick selection.
func TestTable(t *testing.T) {
	limits := strings.Join(strings.Fields(must.Read("../../../../docs/how-long.md")), " ")
	names, used := map[string]bool{}, map[string]bool{}
	for _, c := range plays.Table() {
		if names[c.Name] {
			t.Errorf("two cases have the name %q", c.Name)
		}
		names[c.Name] = true
		used[c.Words] = true
		used[c.Server[0]] = true
		for _, p := range c.Plays {
			for _, step := range p.Steps {
				used[step.Verb] = true // ingress
			}
		}
		if !strings.Contains(limits, c.Words) {
			t.Errorf("%s: docs/how-long.md has no %q", c.Name, c.Words)
		}
		if lead := c.Lead(); c.Quick && lead > 12*s {
			t.Errorf("%s: begins %v before TERM: too slow for the quick selection", c.Name, lead)
		}
	}
	for name, columns := range plays.Limits() {
		if !used[columns[2]] {
			t.Errorf("no row has the limit %q", name)
		}
	}
	for _, c := range plays.Kept() {
		used[c.Server[0]] = true
		if text := fmt.Sprint(c.Plays[0].Steps); !strings.Contains(text, "NAME") || c.Plays[0].Work == 0 {
			t.Errorf("%s: no name or time in %s", c.Name, text)
		}
	}
	scripts, _ := filepath.Glob("../peers/scripts/*.sh")
	if len(scripts) < 10 {
		t.Errorf("%d servers", len(scripts))
	}
	for _, path := range scripts {
		if name := strings.TrimSuffix(filepath.Base(path), ".sh"); !used[name] {
			t.Errorf("no row has the server %q", name)
		}
	}
}

// TestKept checks the rows against the table of kept connections in docs/presets.md: each
// server with "yes" has a row as proof, and no row shows that another closes them.
func TestKept(t *testing.T) {
	_, text, _ := strings.Cut(must.Read("../../../../docs/presets.md"), "| server | closes kept connections |")
	text, _, _ = strings.Cut(text, "\n\n")
	shown := map[string]bool{}
	for _, c := range plays.Table() {
		for _, flag := range c.Flags {
			preset, found := strings.CutPrefix(flag, "--preset=")
			shown[preset] = shown[preset] || found && c.Race && c.Words == ""
		}
	}
	for line := range strings.Lines(text) {
		columns := strings.Split(line, " | ")
		if len(columns) != 3 {
			continue
		}
		preset := strings.TrimPrefix(columns[0], "| ")
		// The preset go does not know whether the program has a handler.
		if closes := columns[1] == "yes"; closes != shown[preset] && preset != "go" {
			t.Errorf("docs/presets.md says that %s closes kept connections: %s", preset, columns[1])
		}
	}
}

// TestMissed: which stops miss goals, beside two stops at a lull that lost 20 requests. A stop is how long
// it held, and the requests that it lost in the hold, new or begun, and at the signal, late.
func TestMissed(t *testing.T) {
	kinds := map[string]loss{"new": {At: s}, "begun": {At: s, Begun: true}, "late": {At: 30 * s, Begun: true}}
	lull := &row{results: []*result{{Losses: make([]loss, 12)}, {Losses: make([]loss, 8)}}}
	for _, cells := range plays.Rows(`
		8s new, 5s begun, 20s            |
		8s new new new new, 8s, 8s       | 4 against 20 in 2
		8s begun begun, 8s               | cut
		3s late late                     | 2 against 20 in 2
		8s new                           | lost | retries
		20s begun begun                  | cut, lost, held long | retries
	`) {
		r := &row{}
		for stop := range strings.SplitSeq(cells[0], ", ") {
			words := strings.Fields(stop)
			found := &result{Moments: plays.Moments{Signal: plays.Duration(words[0])}}
			for _, word := range words[1:] {
				found.Losses = append(found.Losses, kinds[word])
			}
			r.results = append(r.results, found)
		}
		if got := r.figures().missed(cells[2] != "", lull.figures()); got != cells[1] {
			t.Errorf("%s: missed %q, want %q", cells[0], got, cells[1])
		}
	}
}

// TestJudge compares losses with what the servers have printed, and with what a race allows.
func TestJudge(t *testing.T) {
	kept := &trial{c: &plays.Row{Lag: s}}
	kept.named.Store(3)
	kept.Losses = []loss{{Name: "order1"}, {Name: "order2"}}
	err := kept.judge("order1\nserved order3 order3\n")
	if err != nil || kept.Lost != 2 || kept.Twice != 1 || !kept.Losses[0].Begun || kept.Losses[1].Begun {
		t.Errorf("%v: %+v", err, kept.result)
	}
	if kept.judge("nothing") == nil {
		t.Error("servers that have printed no name are believed")
	}
	race := &trial{c: &plays.Row{Race: true}}
	race.Losses, race.Open = []loss{{Raced: true}, {}}, 2
	race.judge("")
	if race.Lost != 3 || race.Verdict != plays.Early {
		t.Errorf("%+v", race.result)
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
