package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// The pictures of the pages, and the figures of their runs.
const pages = "../../../../docs/"

// texts returns the texts of a well-formed SVG document.
func texts(t *testing.T, document string) (all []string) {
	t.Helper()
	in := xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			all = append(all, string(text))
		}
	}
}

// compare compares a picture with the file of the pages, and looks for texts.
func compare(t *testing.T, file, picture string, wanted ...string) {
	t.Helper()
	drawn, err := os.ReadFile(pages + file)
	if err != nil {
		t.Fatal(err)
	}
	if string(drawn) != picture {
		t.Errorf("docs/%s is not the picture of the figures in testdata: make pictures", file)
	}
	all := strings.Join(texts(t, picture), "\n")
	for _, want := range wanted {
		if !strings.Contains(all, want) {
			t.Errorf("docs/%s has no text %q", file, want)
		}
	}
}

// TestDemoPicture: the picture has the figures of a run in which all claims hold.
func TestDemoPicture(t *testing.T) {
	var rows []*row
	if err := readJSON("testdata/demo.json", &rows); err != nil {
		t.Fatal(err)
	}
	if err := judge(rows); err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for _, r := range rows {
		wanted = append(wanted, r.Name, r.How, fmt.Sprintf("%d failed", r.sum().Failed), "gone after "+r.gone())
	}
	compare(t, "demo.svg", drawDemo(rows), wanted...)
}

// TestAnatomyPicture: the picture has the figures of lameduck's report, and the bars are
// the connections in the report.
func TestAnatomyPicture(t *testing.T) {
	a := &anatomy{}
	if err := readJSON("testdata/stop.json", a); err != nil {
		t.Fatal(err)
	}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	r := &a.Report
	compare(t, "stop.svg", drawAnatomy(a), "$ "+a.Command,
		"trigger: "+r.Trigger,
		"floor "+inSeconds(r.FloorMS),
		"last request, +"+inSeconds(r.LastByteMS),
		fmt.Sprintf("new connections each second: %d, the last at +%s", r.Accepted, inSeconds(r.LastNewMS)),
		inSeconds(r.Sent[0].AtMS-r.LastByteMS),
		fmt.Sprintf("signal: %s, +%s", r.Sent[0].Signal, inSeconds(r.Sent[0].AtMS)),
		fmt.Sprintf("held %s, until %s", inSeconds(r.HeldMS), r.Ended),
		fmt.Sprintf("exit: %d, +%s", *r.ExitCode, inSeconds(r.UsedMS)),
		"ceiling "+inSeconds(r.CeilingMS),
		fmt.Sprintf("grace period %s: %s used", inSeconds(a.GraceMS), inSeconds(r.UsedMS)))
	bars := 0
	for i, n := range a.perSecond() {
		if earliest+i*1000 >= 0 {
			bars += n
		}
	}
	if bars != r.Accepted {
		t.Errorf("the bars since the trigger are %d connections, the report has %d", bars, r.Accepted)
	}
	flight := a.inFlight()
	if last := flight[len(flight)-1]; last.count != 0 || last.ms > r.LastByteMS+250 {
		t.Errorf("the last change of the requests in flight is %+v, the last byte came at %d ms", last, r.LastByteMS)
	}
}

// TestCheck: a report that contradicts the connections is not drawn.
func TestCheck(t *testing.T) {
	code := 0
	for name, c := range map[string]struct {
		a  anatomy
		ok bool
	}{
		"sound":          {anatomy{Report: stopReport{Accepted: 1, Sent: []sentSignal{{"TERM", 9}}, ExitCode: &code}, Connections: []connection{{-5, 1}, {0, 7}}}, true},
		"one is missing": {anatomy{Report: stopReport{Accepted: 1, Sent: []sentSignal{{"TERM", 9}}, ExitCode: &code}, Connections: []connection{{-5, 1}}}, false},
		"killed":         {anatomy{Report: stopReport{Sent: []sentSignal{{"TERM", 9}}}}, false},
		"no signal":      {anatomy{Report: stopReport{ExitCode: &code}}, false},
	} {
		if err := c.a.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
