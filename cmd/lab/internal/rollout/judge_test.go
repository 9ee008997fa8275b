package rollout

import (
	"strings"
	"testing"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// found returns the findings of a run of steady traffic.
func found(list ...*figures) *findings { return foundIn(steady, list...) }

func foundIn(s scene, list ...*figures) *findings {
	return &findings{Scenes: []*sceneFigures{{Scene: s, Contenders: list}}}
}

func figure(name string, failed int, median float64) *figures {
	return figureOf("go", name, failed, median)
}

// figureOf returns the figures of a contender and a server.
func figureOf(server, name string, failed int, median float64) *figures {
	return figureWith(load.Cut, server, name, failed, median)
}

// figureWith is figureOf for failures of a kind.
func figureWith(kind load.Kind, server, name string, failed int, median float64) *figures {
	p := part{Stops: 4, Requests: 100, Failed: failed, Kinds: map[load.Kind]int{kind: failed}, stopTimes: stopTimes{MedianMS: median}}
	return &figures{Name: name, All: p, ByServer: map[string]*part{server: &p}}
}

func TestJudge(t *testing.T) {
	quiet, settled := "lameduck --until=quiet", "lameduck --until=settled"
	asLong := sleepFor(keptSleep)
	for name, c := range map[string]struct {
		found  *findings
		broken string // part of the broken claim
	}{
		"all well":         {found(figure("bare", 9, 0), figure("sleep 14, then tini", 0, 14000), figure(quiet, 0, 3000)), ""},
		"nothing shown":    {found(figure("bare", 0, 0)), "without anything"},
		"quiet loses":      {found(figure(quiet, 1, 3000)), "loses nothing: 1 of 100"},
		"drained loses":    {found(figure("lameduck --until=drained", 1, 3000)), "drained loses"},
		"settled loses":    {found(figure(settled, 1, 3000)), "settled loses"},
		"fast loses":       {found(figure(quiet+short, 1, 3000)), "where each request has its connection (go): 1"},
		"fast and kept":    {found(figureOf("pool", quiet+short, 1, 3000)), ""},
		"settled":          {found(figure(settled, 0, 3000)), ""},
		"too slow":         {found(figure("sleep 14, then tini", 0, 14000), figure(quiet, 0, 8500)), "at most 0.6"},
		"sleep by chance":  {found(figure("sleep 10, then tini", 0, 10000), figure("sleep 14, then tini", 0, 14000), figure(quiet, 0, 8300)), ""},
		"sleep that loses": {found(figure("sleep 5, then tini", 1, 5000), figure("sleep 14, then tini", 0, 14000), figure(quiet, 0, 8300)), ""},
		"every sleep":      {found(figure("sleep 5, then tini", 1, 5000), figure("sleep 14, then tini", 1, 14000), figure(quiet, 0, 8300)), ""},
		"delay alone":      {found(figure("lameduck --delay=5", 3, 5000)), ""},
		"broken":           {found(figure(broken, 3, 0)), "broken"},

		"kept: well":            {foundIn(kept, figureOf("dies", asLong, 10, 20000), figureOf("dies", quiet, 1, 20000)), ""},
		"kept: loses":           {foundIn(kept, figureOf("dies", asLong, 10, 20000), figureOf("dies", quiet, 3, 20000)), "dying servers: at most 0.1"},
		"kept: resets":          {foundIn(kept, figureOf("dies", asLong, 10, 20000), figureWith(load.Reset, "dies", quiet, 9, 20000)), ""},
		"kept: chance":          {foundIn(kept, figureOf("dies", asLong, 10, 20000), figureOf("dies", quiet, 2, 20000)), ""},
		"kept: within a tenth":  {foundIn(kept, figureOf("dies", asLong, 40, 20000), figureOf("dies", quiet, 4, 20000)), ""},
		"kept: graceful":        {foundIn(kept, figureOf("graceful", asLong, 2, 20000), figureOf("graceful", quiet, 2, 20000)), ""},
		"kept: graceful loses":  {foundIn(kept, figureOf("graceful", asLong, 2, 20000), figureOf("graceful", quiet, 3, 20000)), "graceful servers"},
		"kept: no sleep":        {foundIn(kept, figureOf("dies", quiet, 7, 20000)), ""},
		"kept: fast or settled": {foundIn(kept, figureOf("dies", asLong, 1, 20000), figureOf("dies", quiet+short, 9, 5000), figureOf("dies", settled, 9, 5000)), ""},
		"kept: nothing shown":   {foundIn(kept, figureOf("dies", "bare", 0, 0)), "without anything"},
		"sparse: silence loses": {foundIn(sparse, figureOf("thin", "bare", 9, 0), figureOf("thin", quiet, 2, 5000), figureOf("thin", floored, 0, 10000)), ""},
		"sparse: floor loses":   {foundIn(sparse, figureOf("thin", floored, 1, 10000)), "--delay=10 loses nothing"},
		"sparse: nothing shown": {foundIn(sparse, figureOf("thin", "bare", 0, 0)), "without anything"},
	} {
		var texts []string
		for _, claim := range judge(c.found) {
			if !claim.holds {
				texts = append(texts, claim.text)
			}
		}
		all := strings.Join(texts, "\n")
		if (c.broken == "") != (all == "") || !strings.Contains(all, c.broken) || len(texts) > 1 {
			t.Errorf("%s: broken are %q, want %q", name, texts, c.broken)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{nil, 0.5, 0}, {[]float64{3}, 0.95, 3}, {[]float64{4, 1}, 0.5, 2.5}, {[]float64{3, 1, 2}, 0.5, 2}, {[]float64{3, 1, 2}, 1, 3},
	} {
		if got := quantile(c.values, c.q); got != c.want {
			t.Errorf("%v of %v is %v, want %v", c.q, c.values, got, c.want)
		}
	}
}
