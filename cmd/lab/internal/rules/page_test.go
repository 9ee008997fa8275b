package rules

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const page = "../../../../docs/how-long.md"

var update = flag.Bool("update", false, "write the table of "+page)

// defaultResults are the results of the simulation with the default flags.
var defaultResults = sync.OnceValues(func() ([]result, error) {
	rules := append(fixedRules(), adaptiveRules()...)
	trials, err := simulate(context.Background(), defaults.seed, defaults.stops, rules)
	return summarize(trials, rules), err
})

// TestPage: docs/how-long.md has the figures that the program prints.
func TestPage(t *testing.T) {
	results := mustResults(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?m)^\| rule \|.*\n(\|.*\n)+`)
	if *update {
		text = table.ReplaceAllLiteral(text, []byte(pageTable(results)))
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := string(table.Find(text)); got != pageTable(results) {
		t.Errorf("%s has the table\n%s\nthe simulation says\n%s\nread the difference, and write it with -update", page, got, pageTable(results))
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, sentence := range sentences(results) {
		if !strings.Contains(words, sentence) {
			t.Errorf("%s lacks %q", page, sentence)
		}
	}
}

// sentences are the sentences of docs/how-long.md that have figures.
func sentences(results []result) []string {
	brief := find(results, "silence 1 s").byPart
	silence := find(results, "silence 4 s").byPart
	withFloor := find(results, "floor 5 s + silence 3 s").byPart
	losing := func(f *figures) string { return count(f.losingRate()) }
	return []string{
		fmt.Sprintf("A silence of 1 s, `--quiet-for=1s`, loses requests at %s of 1 000 stops, and in dense traffic (10 requests a second or more) at %s: at %s behind a balancer with stragglers, and at %s behind others.",
			losing(brief[everyStop]), losing(brief[denseTraffic]), losing(brief[denseStragglers]), losing(brief[denseOthers])),
		fmt.Sprintf("A silence of 4 s alone loses requests at %s of 1 000 stops, a floor of 5 s with a silence of 3 s at %s, and",
			losing(silence[everyStop]), losing(withFloor[everyStop])),
	}
}

// TestSilenceBeatsFloor: the statements of docs/how-long.md about fixed rules. A floor as
// long as the longest lag loses nothing. A shorter floor loses more than a silence with a
// shorter median hold, in stops and in requests. A silence of 4 s loses requests at fewer
// stops than a floor of 5 s with a silence of 3 s, in a shorter median hold; the numbers of
// requests come from few stops, and do not decide.
func TestSilenceBeatsFloor(t *testing.T) {
	results := mustResults(t)
	all := func(rule string) *figures { return find(results, rule).byPart[everyStop] }
	if f := all("sleep 30 s"); f.lost != 0 {
		t.Errorf("sleep 30 s: %d requests lost", f.lost)
	}
	silence := all("silence 4 s")
	for _, rule := range []string{"sleep 5 s", "sleep 10 s", "sleep 15 s", "sleep 20 s", "floor 5 s + silence 3 s"} {
		f := all(rule)
		if silence.losing >= f.losing || silence.hold.median >= f.hold.median {
			t.Errorf("%s: %+v; silence 4 s: %+v", rule, f, silence)
		}
		if strings.HasPrefix(rule, "sleep") && silence.lost >= f.lost {
			t.Errorf("%s loses %d requests, silence 4 s %d", rule, f.lost, silence.lost)
		}
	}
}

// TestAdaptiveRules: every silence that adapts to the traffic loses more requests than a
// silence of 3 s, and in dense traffic, where the silence is shortened, more stops too.
func TestAdaptiveRules(t *testing.T) {
	results := mustResults(t)
	fixed := find(results, "silence 3 s").byPart
	for _, r := range adaptiveRules() {
		adaptive := find(results, r.name).byPart
		for _, part := range []string{everyStop, denseTraffic, denseStragglers} {
			if adaptive[part].lost <= fixed[part].lost {
				t.Errorf("%s, %s: %d requests lost, with a silence of 3 s %d", r.name, part, adaptive[part].lost, fixed[part].lost)
			}
		}
		for _, part := range []string{denseTraffic, denseStragglers} {
			if adaptive[part].losing <= fixed[part].losing {
				t.Errorf("%s, %s: %d stops lose, with a silence of 3 s %d", r.name, part, adaptive[part].losing, fixed[part].losing)
			}
		}
	}
}

func mustResults(t *testing.T) []result {
	t.Helper()
	results, err := defaultResults()
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// TestFigures: the figures of four stops with known outcomes.
func TestFigures(t *testing.T) {
	var trials []trial
	for i, lost := range []int{0, 3, 0, 1} {
		d := time.Duration(i+1) * time.Second
		trials = append(trials, trial{scenario{rate: float64(i) * 6}, 10, []outcome{{lost, d, d / 2}}})
	}
	results := summarize(trials, []rule{sleep(time.Second)})
	want := map[string]figures{
		everyStop:       {4, 2, 40, 4, spread{2 * time.Second, 3 * time.Second}, spread{time.Second, 1500 * ms}},
		denseTraffic:    {2, 1, 20, 1, spread{3 * time.Second, 3 * time.Second}, spread{1500 * ms, 1500 * ms}},
		denseStragglers: {},
	}
	for part, w := range want {
		if got := *results[0].byPart[part]; got != w {
			t.Errorf("%s: got %+v, want %+v", part, got, w)
		}
	}
	f := results[0].byPart[everyStop]
	if f.losingRate() != 500 || f.lostRate() != 100 || f.lostPerStop() != 1 {
		t.Errorf("%g of 1 000 stops, %g of 1 000 requests, %g a stop", f.losingRate(), f.lostRate(), f.lostPerStop())
	}
}

// TestRun: the output has every rule in every table, the same output for the same seed,
// and another for another seed.
func TestRun(t *testing.T) {
	run := func(args ...string) string {
		var out bytes.Buffer
		if err := Run(t.Context(), append([]string{"-stops=60"}, args...), &out); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return out.String()
	}
	text := run()
	rows := map[string]int{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		rows[name]++
	}
	for _, r := range append(fixedRules(), adaptiveRules()...) {
		if rows[r.name] != 7 {
			t.Errorf("%s is in %d tables, want 7", r.name, rows[r.name])
		}
	}
	if run() != text || run("-seed=2") == text {
		t.Error("the seed does not decide the output")
	}
	if rows := strings.Count(run("-page"), "\n"); rows != 2+len(pageRules) {
		t.Errorf("-page prints %d lines", rows)
	}
	for _, args := range [][]string{{"-stops=0"}, {"word"}} {
		if err := Run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
