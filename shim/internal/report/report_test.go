package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/internal/tables"
	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

var update = flag.Bool("update", false, "write the golden file")

// goldenFile has the report of every case.
var goldenFile = "../../../testdata/report.txt"

// TestReport: the report of each case, in words and in JSON, is the golden one. Of the JSON the
// golden file has what differs from the first stop, or the first cost.
func TestReport(t *testing.T) {
	var b strings.Builder
	var first map[string]any
	add := func(name string, lines []string, text string) {
		fmt.Fprintf(&b, "# %s\n%s\n", name, strings.Join(lines, "\n"))
		var figures map[string]any
		if err := json.Unmarshal([]byte(text), &figures); err != nil || len(lines) > 5 {
			t.Errorf("%s: %v: %s", name, err, text)
		}
		if message, has := figures["message"]; has && message != strings.Join(lines, "; ") {
			t.Errorf("%s: the message is %q", name, message)
		}
		if delete(figures, "message"); len(first) != len(figures) {
			first = figures
			fmt.Fprintf(&b, "%s\n\n", text)
			return
		}
		maps.DeleteFunc(figures, func(name string, value any) bool { return reflect.DeepEqual(value, first[name]) })
		fmt.Fprintf(&b, "%s\n\n", Encode(figures))
	}
	one := func(line func(*Stop) string) func(*Stop) []string {
		return func(s *Stop) []string { return []string{line(s)} }
	}
	lines := map[string]func(s *Stop) []string{
		"begin": one((*Stop).Announcement), "late": (*Stop).Late, "goes-on": one((*Stop).Continuation),
		"end": (*Stop).Conclusion, "unreported": one((*Stop).Unreported),
	}
	for _, cells := range tables.Rows(stops) {
		s := newStop()
		s.change(cells[2])
		add(cells[0], lines[cells[1]](s), Encode(s.Figures()))
	}
	for _, cells := range tables.Rows(costs) {
		c := newCost()
		c.change(cells[1])
		add(cells[0], c.Lines(), c.JSON())
	}
	if *update {
		os.WriteFile(goldenFile, []byte(b.String()), 0o644)
	}
	if want := read(t, goldenFile); b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSentencesShown: the golden file shows each sentence.
func TestSentencesShown(t *testing.T) {
	golden := read(t, goldenFile)
	verb := regexp.MustCompile(`%(\\\[\d\\\]|\\\.[01])?[dfsv]`)
	n := 0
	for _, name := range strings.Fields("report cost cause suggestion workers sentences") {
		code := regexp.MustCompile("//.*|`.*`").ReplaceAllString(read(t, name+".go"), "")
		for _, literal := range regexp.MustCompile(`"([^"\n]*)"`).FindAllStringSubmatch(code, -1) {
			if !strings.Contains(literal[1], " ") {
				continue
			}
			n++
			shown := regexp.MustCompile(verb.ReplaceAllString(regexp.QuoteMeta(literal[1]), ".+"))
			if !shown.MatchString(golden) {
				t.Errorf("no case shows %q", literal[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("%d sentences", n)
	}
}

// TestLine: any message becomes one object, short enough for one write, and so does the
// longest report.
func TestLine(t *testing.T) {
	longest := newStop()
	longest.WaitGone = slices.Repeat([]string{strings.Repeat("\x01", 4000)}, 9)
	longest.end(stop.Quiet, 20)
	longest.Sent = slices.Repeat(longest.Sent, 50)
	for _, message := range []string{
		"", `"\`, "\x00\x1b\n\r\xff", "«▁█»<&>", strings.Repeat("x\xff", 50_000), strings.Repeat("▁", 3000),
		strings.Join(longest.Conclusion(), "; "),
	} {
		for _, f := range []Fields{nil, longest.Figures()} {
			line := Line(trigger, "warn", message, f, 4096)
			var object struct{ Message string }
			if err := json.Unmarshal([]byte(line), &object); err != nil || len(line) > 4095 || strings.Contains(line, "\n") {
				t.Errorf("%.20q: %d bytes: %v", message, len(line), err)
			}
			if len(message) < 500 && object.Message != quote.Line(message) {
				t.Errorf("%.20q became %.20q", message, object.Message)
			}
		}
	}
	line := Line(trigger, "warn", "a line", nil, 4096)
	if cut := Line(trigger, "warn", "a line", nil, len(line)); len(cut) >= len(line) {
		t.Errorf("%d bytes, want fewer", len(cut))
	}
}

// TestReportDocs: docs/production.md explains exactly the names and reasons that exist, in the
// order of the JSON.
func TestReportDocs(t *testing.T) {
	page := read(t, "../../../docs/production.md")
	var found []string
	for _, row := range tables.Rows(page) {
		if len(row) > 2 && strings.HasSuffix(row[1], "`") {
			for name := range strings.SplitSeq(row[1], ", ") {
				found = append(found, strings.Trim(name, "`"))
			}
		}
	}
	names := func(fields Fields) (list []string) {
		for pair := range slices.Chunk(fields, 2) {
			list = append(list, pair[0].(string))
		}
		return list
	}
	reasons := "elapsed settled quiet drained kept ceiling second_signal interrupt child_exit no_listener no_progress udp blind"
	want := slices.Concat(names(newCost().figures()), []string{"schema", "time", "level", "message"},
		names(newStop().Figures()), strings.Fields(reasons))
	if !slices.Equal(found, want) {
		t.Errorf("the page has\n%q\nwant\n%q", found, want)
	}
}

// TestSparkline: a sparkline has a bar for each second, or for several seconds so that 30
// bars are enough. Zero is the lowest bar, the greatest sum the highest.
func TestSparkline(t *testing.T) {
	for _, cells := range tables.Rows(`
		# the sparkline | numbers, 30x3 for a 3 thirty times
		                               |
		▁                              | 0
		▁▂▃▄▅▆▇█                       | 0 1 2 3 4 5 6 7
		▂█                             | 1 1000
		█▁▂▅                           | 1099511627776 0 1 549755813888
		██████████████████████████████ | 30x3
		███████████████▅               | 31x3
		▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█ | 59x0 1
	`) {
		var numbers []int
		for word := range strings.FieldsSeq(cells[1]) {
			times, number := 1, 0
			if n, _ := fmt.Sscanf(word, "%dx%d", &times, &number); n < 2 {
				times, number = 1, times
			}
			numbers = append(numbers, slices.Repeat([]int{number}, times)...)
		}
		if got := Sparkline(numbers); got != cells[0] {
			t.Errorf("of %v %s, want %s", numbers, got, cells[0])
		}
	}
}
