package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/sig"
	"github.com/lameduck-init/lameduck/shim/internal/stop"
)

var update = flag.Bool("update", false, "write the golden file")

// goldenFile has the report of every case.
var goldenFile = "../../../testdata/report.txt"

// play returns the stop of a case.
func (c *stopCase) play() *Stop {
	s := newStop()
	c.change(s)
	return s
}

// TestReport: the report of each case, in words and in JSON, is the golden one.
func TestReport(t *testing.T) {
	var b strings.Builder
	for _, c := range stopCases {
		s := c.play()
		fmt.Fprintf(&b, "# %s\n%s\n", c.name, strings.Join(c.lines(s), "\n"))
		if c.json {
			fmt.Fprintln(&b, Encode(s.Figures()))
		}
		b.WriteString("\n")
	}
	for _, c := range costCases {
		v := newCost()
		c.change(v)
		fmt.Fprintf(&b, "# %s\n%s\n%s\n\n", c.name, strings.Join(v.Lines(), "\n"), v.JSON())
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
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

// TestSentencesShown: the golden file shows each sentence of sentences.go.
func TestSentencesShown(t *testing.T) {
	golden := read(t, goldenFile)
	file, err := parser.ParseFile(token.NewFileSet(), "sentences.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`%(\\\[\d\\\])?[dsv]`)
	sentences := 0
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); !ok || gen.Tok == token.IMPORT {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(lit.Value)
			sentences++
			if !regexp.MustCompile(verb.ReplaceAllString(regexp.QuoteMeta(text), ".+")).MatchString(golden) {
				t.Errorf("no case shows %q", text)
			}
			return true
		})
	}
	if sentences < 50 {
		t.Errorf("%d sentences", sentences)
	}
}

var malformed = regexp.MustCompile(`%!|;;|  |; ;|, ,|: :| -\d|\+-|<nil>|0001|invalid`)

// ofLine are the names of every line in JSON.
const ofLine = "schema time level message "

// names are the promised names of a report in JSON.
const names = "trigger held_ms ended floor_ms ceiling_ms accepted last_new_ms last_byte_ms open in_flight streams left_out closed_idle came_back new_ports sent lull " +
	"exit_code exit_signal grace_used_ms grace_assumed observer scope prolonged_by prolonged_by_peer suggestion"

// TestAnyStop: whatever the samples showed, a report is up to three printable lines, and the
// JSON has all names. The samples are those of another case.
func TestAnyStop(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	other := func() *Stop { return stopCases[random.IntN(len(stopCases))].play() }
	for range 500 {
		s := other()
		s.InHold, s.Lull, s.OnStopUntil = other().InHold, other().Lull, other().OnStopUntil
		s.InHold.Cause = other().InHold.Cause
		reports := [][]string{s.Announcement(), s.Late()}
		if s.Ended != "" || !s.ExitedAt.IsZero() {
			reports = append(reports, s.Conclusion())
		}
		for _, lines := range reports {
			for _, line := range lines {
				unprintable := strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) })
				if malformed.MatchString(line) || unprintable || len(lines) > 3 {
					t.Errorf("%q", lines)
				}
			}
		}
		if got := namesIn(t, Line(trigger, "info", "a line", s.Figures(), 4096)); !slices.Equal(got, strings.Fields(ofLine+names)) {
			t.Errorf("the names are %v", got)
		}
	}
	if got := namesIn(t, Line(trigger, "warn", "a line", nil, 4096)); !slices.Equal(got, strings.Fields(ofLine)) {
		t.Errorf("the names are %v", got)
	}
}

// namesIn returns the names of an object, in their order.
func namesIn(t *testing.T, line string) (list []string) {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(line), &object); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	for _, m := range regexp.MustCompile(`[{,]"([a-z_]+)":`).FindAllStringSubmatch(line, -1) {
		if _, outer := object[m[1]]; outer {
			list = append(list, m[1])
		}
	}
	return list
}

// TestLine: any message becomes one object, short enough for one write, and so does the
// longest report.
func TestLine(t *testing.T) {
	longest := newStop()
	longest.WaitGone = slices.Repeat([]string{strings.Repeat("\x01", 4000)}, 9)
	longest.end(stop.Quiet, 20)
	longest.Sent = slices.Repeat([]stop.Sent{{Signal: sig.TERM, At: at(20)}}, 50)
	for _, message := range []string{
		"", `"\`, "\x00\x1b\n\r", "\xff\xfe", "«▁█»", "<&>", strings.Repeat("x", 100_000), strings.Repeat("\x01", 5000),
		strings.Repeat("x\xff", 2500), strings.Repeat("▁", 3000), strings.Join(longest.Conclusion(), "; "),
	} {
		for _, f := range []*Figures{nil, newStop().Figures(), longest.Figures()} {
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

// TestReportDocs: docs/production.md explains exactly the names and reasons that exist.
func TestReportDocs(t *testing.T) {
	page := read(t, "../../../docs/production.md")
	var found []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|.*\\|$").FindAllStringSubmatch(page, -1) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[1], -1) {
			found = append(found, name[1])
		}
	}
	want := strings.Fields(namesOfCost + " " + ofLine + names +
		" elapsed settled quiet drained kept ceiling second_signal interrupt child_exit no_listener no_progress udp blind")
	if !slices.Equal(found, want) {
		t.Errorf("the page has\n%q\nwant\n%q", found, want)
	}
}

func repeat(n, times int) []int { return slices.Repeat([]int{n}, times) }

// TestSparkline: a sparkline has a bar for each second, or for several seconds so that 30
// bars are enough. Zero is the lowest bar, the greatest sum the highest.
func TestSparkline(t *testing.T) {
	const huge = 1 << 40
	for _, c := range []struct {
		news []int
		want string
	}{
		{nil, ""},
		{[]int{0}, "▁"},
		{[]int{1}, "█"},
		{[]int{0, 0, 0}, "▁▁▁"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]int{1, 1000}, "▂█"},
		{[]int{huge, 0, 1, huge / 2}, "█▁▂▅"},
		{repeat(3, 30), strings.Repeat("█", 30)},
		{append(repeat(3, 30), 3), strings.Repeat("█", 15) + "▅"},
		{append(repeat(0, 59), 1), strings.Repeat("▁", 29) + "█"},
		{repeat(huge, 3600), strings.Repeat("█", 30)},
	} {
		if got := Sparkline(c.news); got != c.want {
			t.Errorf("of %d seconds %s, want %s", len(c.news), got, c.want)
		}
	}
	for n := range 4000 {
		if got := []rune(Sparkline(repeat(1, n))); len(got) > Columns || n >= Columns && len(got) <= Columns/2 {
			t.Errorf("of %d seconds %d bars", n, len(got))
		}
	}
}

// TestNoLinger: without --linger, the line for the end does not name descendants, even if
// lameduck stood still between the command's exit and the report.
func TestNoLinger(t *testing.T) {
	s := newStop()
	s.Now = s.ExitedAt.Add(time.Second)
	if line := s.Conclusion()[0]; strings.Contains(line, "descendants") {
		t.Error(line)
	}
}
