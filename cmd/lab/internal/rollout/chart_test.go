package rollout

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	f := found(figure("bare", 395, 0), figure("sleep <14>, then tini", 0, 14000))
	f.Scenes = append(f.Scenes, foundIn(kept, figure("kept row", 7, 20000)).Scenes...)
	text := chart(f)
	for in := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := in.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
	for _, want := range []string{">bare<", ">395<", "sleep &lt;14&gt;, then tini", "14.0 s", "prefers-color-scheme:dark", ">kept row<", kept.title()} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
}
