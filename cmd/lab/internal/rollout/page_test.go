package rollout

import (
	"slices"
	"strings"
	"testing"
)

// TestPage: every row of the page has a contender of the scene.
func TestPage(t *testing.T) {
	f := &findings{}
	for _, s := range allScenes {
		g := foundIn(s).Scenes[0]
		for _, row := range pageRows[s] {
			i := slices.IndexFunc(contenders(), func(c contender) bool { return c.name == row[0] && c.plays(s) })
			if i < 0 {
				t.Errorf("%s: no contender %q", s, row[0])
			}
			g.Contenders = append(g.Contenders, figureOf("dies", row[0], 7, 20000))
		}
		f.Scenes = append(f.Scenes, g)
	}
	text := page(f)
	for _, want := range []string{
		"| sleep 14, then tini | 100 | 7 | 0 | 20.0 s | 0.0 s |",
		"| `lameduck --until=settled` | 100 | 7 | 0 | 20.0 s | 0.0 s |",
		"| `" + floored + "` |",
		kept.title() + ", 4 stops each:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
