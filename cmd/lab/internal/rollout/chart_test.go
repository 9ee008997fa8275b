package rollout

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestChart: the document is well-formed, and has the figures of the chosen contenders.
func TestChart(t *testing.T) {
	f := found(figure("bare", 396, 0), figure("tini", 395, 0), figure("sleep 14, then tini", 0, 14000), figure(defaultHold, 0, 6800))
	f.Scenes = append(f.Scenes, foundIn(kept, figure(sleepFor(keptSleep), 7, 20000)).Scenes...)
	text := chart(f)
	for in := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{">tini<", ">395<", ">sleep 14<", ">14.0 s<", ">" + defaultHold + "<", ">6.8 s<", ">sleep 20<", ">7<", kept.title(),
		"lameduck fails none of 100 requests, 6.8 s a stop; the shortest sleep that fails none: 14.0 s"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "396") {
		t.Error("a contender that is not chosen is drawn")
	}
}

// TestHeadline: the headline claims no more than the figures show.
func TestHeadline(t *testing.T) {
	for name, f := range map[string]*findings{
		"the hold loses":      found(figure("sleep 14, then tini", 0, 14000), figure(defaultHold, 1, 6800)),
		"every sleep loses":   found(figure("sleep 14, then tini", 1, 14000), figure(defaultHold, 0, 6800)),
		"no sleep":            found(figure(defaultHold, 0, 6800)),
		"no hold":             found(figure("sleep 14, then tini", 0, 14000)),
		"only another scene":  foundIn(kept, figure("sleep 14, then tini", 0, 14000), figure(defaultHold, 0, 6800)),
		"the hold was killed": found(figure("sleep 14, then tini", 0, 14000), killed(figure(defaultHold, 0, 6800))),
	} {
		if text := f.headline(); strings.Contains(text, "none") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func killed(f *figures) *figures {
	f.All.Killed = 1
	return f
}

// TestChartRows: every row of the chart has a contender of the scene.
func TestChartRows(t *testing.T) {
	for _, s := range allScenes {
		for _, name := range chartRows[s] {
			if !slices.ContainsFunc(contenders(), func(c contender) bool { return c.name == name && c.plays(s) }) {
				t.Errorf("%s: no contender %q", s, name)
			}
		}
	}
}

// TestRewrite: the figures of a run give the same chart and the same claims again.
func TestRewrite(t *testing.T) {
	f := found(figure("bare", 9, 0), figure("sleep 14, then tini", 0, 14000), figure(defaultHold, 0, 6800))
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o := &options{files: files{from: filepath.Join(dir, "figures"), svg: filepath.Join(dir, "svg")}}
	if err := os.WriteFile(o.from, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := o.rewrite(&out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	drawn, err := os.ReadFile(o.svg)
	if err != nil || string(drawn) != chart(f) {
		t.Errorf("another chart is drawn (%v):\n%s", err, drawn)
	}
}
