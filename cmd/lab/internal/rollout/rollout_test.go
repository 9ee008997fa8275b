package rollout

import (
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
	"github.com/lameduck-init/lameduck/internal/tables"
)

// played returns the trials of rows "server | contender | kind of failure | failed | stop", of
// four stops each, with a word "stalled" or "killed" behind, and then what watch counted.
func played(text string) (all findings) {
	for _, row := range tables.Read[struct {
		Server, Contender string
		Kind              load.Kind
		Failed            int
		Stop              time.Duration
		State             string
		Watched           int
	}](text) {
		t := &trial{Contender: row.Contender, Server: row.Server, server: serverOf(row.Server)}
		t.Stalled = row.State == "stalled"
		for range 4 {
			t.Stops = append(t.Stops, &stop{Requests: 100, StopMS: ms(row.Stop), Killed: row.State == "killed"})
		}
		if row.Failed > 0 {
			t.Stops[0].Failed = map[load.Kind]int{row.Kind: row.Failed}
		}
		if row.Watched > 0 {
			t.Stops[0].Watch = &stage.Report{Cut: new(1), Refused: new(row.Watched - 1)}
		}
		all = append(all, t)
	}
	return all
}

// TestJudge: each block of rows breaks the claim in its first line, or no claim.
func TestJudge(t *testing.T) {
	for block := range strings.SplitSeq(strings.TrimSpace(must.Read("testdata/judge.txt")), "\n\n") {
		name, list, _ := strings.Cut(block, "\n")
		name, broken, _ := strings.Cut(strings.TrimPrefix(name, "# "), ": ")
		var out strings.Builder
		played(list).judge(&out)
		all := append(regexp.MustCompile("BROKEN.*").FindAllString(out.String(), -1), "no claim")
		if !strings.Contains(all[0], broken) || len(all) > 2 {
			t.Errorf("%s: broken is %q, want %q", name, all, broken)
		}
	}
}

// TestPicture: the picture of the demo is of a run in which all claims hold.
func TestPicture(t *testing.T) {
	var f findings
	must.Do(json.Unmarshal([]byte(must.Read("testdata/demo.json")), &f))
	for _, t := range f {
		t.server = serverOf(t.Server)
		t.contender = contenders[slices.IndexFunc(contenders, func(c *contender) bool { return c.Name == t.Contender })]
	}
	if err := f.judge(io.Discard); err != nil {
		t.Error(err)
	}
	if must.Read("../../../../docs/demo.svg") != f.draw() {
		t.Error("docs/demo.svg is not the picture of the figures in testdata: make pictures")
	}
}
