package rollout

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/proc"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// TestMain makes the test binary the laboratory too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && (os.Args[1] == "rollout" || os.Args[1] == "demo") {
		stage.Main(os.Args[1:], stage.Commands{"rollout": Run, "demo": Demo}, stage.Roles{"rollout": Roles})
	}
	os.Exit(m.Run())
}

// script writes a lameduck that runs a line in place of its own work, with the server in "$@", and
// another in place of watch.
func script(t *testing.T, line, watch string) (path string) {
	path = filepath.Join(t.TempDir(), "lameduck")
	text := "#!/bin/sh\n[ $1 != watch ] || exec " + watch + "\n" +
		"while [ \"$1\" != -- ]; do shift; done\nshift\n" + line + "\n"
	must.Do(os.WriteFile(path, []byte(text), 0o755))
	return path
}

// TestBroken shows that the laboratory can fail: the claims about a lameduck that does not
// hold are broken.
func TestBroken(t *testing.T) {
	lameduck := script(t, `exec "$@"`, `printf '{"cut":0,"refused":0,"server_ended_ms":%s}\n' 0 0`)
	for want, args := range map[string][]string{
		// The strips have a column of time once all its requests have ended.
		`(?s)bare +\.[.x]*x[.x]*\. 0\.\d s, \d+ failed.*BROKEN  demo: lameduck loses none`: {"demo"},
		`(?s)BROKEN  steady: lameduck --until=quiet loses none.*BROKEN  lameduck watch`: {"rollout", "-scale=0.4", "-n=1",
			`-run=steady: go \| ` + defaultHold + "$"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("/proc/self/exe", append(args, lameduck)...).CombinedOutput()
			if regexp.MustCompile("cannot make namespaces|not found in").Match(out) {
				t.Skipf("%s", out)
			}
			if err == nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("ended with %v:\n%s", err, out)
			}
		})
	}
}

// TestInterrupted: an interrupted demo leaves no process, though a server outlives its parent.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &options{scenes: []scene{demo}, scale: 1, repeat: 1, jobs: 4, stops: 1,
		lone: true, lameduck: script(t, `"$@"; exit`, "sleep 60")}
	trials := o.plan()
	time.AfterFunc(700*time.Millisecond, cancel)
	if err := o.playAll(ctx, trials); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if children := proc.Children(os.Getpid()); len(children) > 0 {
		t.Errorf("children are left: %v", children)
	}
}

// TestPlan: every contender meets every server of its scenes, with all distributions and the same
// lags, which the seed decides, and scaling keeps the lags in proportion.
func TestPlan(t *testing.T) {
	o := &options{seed: 7, scale: 0.5, repeat: 2, stops: 4, scenes: []scene{steady, kept, sparse}}
	halves, again := o.plan(), o.plan()
	o.scale = 1
	played := map[string]bool{}
	lags := map[string][]drawn{}
	for i, a := range o.plan() {
		played[fmt.Sprint(a.Contender, a.Server, a.Repetition)] = true
		key := fmt.Sprint(a.Server, a.Repetition)
		if lags[key] == nil {
			lags[key] = a.lags
		}
		if !reflect.DeepEqual(halves[i].lags, again[i].lags) || !reflect.DeepEqual(a.lags, lags[key]) || len(a.lags) != 4 {
			t.Errorf("%s has other lags with %s, or the second time", a.Server, a.Contender)
		}
		for j, d := range a.lags {
			if d.Lag < 200*time.Millisecond || d.Lag > longestLag || (d.Lag-2*halves[i].lags[j].Lag).Abs() > 2 {
				t.Errorf("%s: %v, at half the time %v", a.Server, d, halves[i].lags[j])
			}
		}
	}
	want := 0
	for _, c := range contenders {
		for _, s := range servers {
			if c.plays(s.scene) && slices.Contains(o.scenes, s.scene) {
				want += o.repeat
			}
		}
	}
	if len(played) != want || len(again) != want {
		t.Errorf("%d trials, %d of them different, want %d", len(again), len(played), want)
	}
}

// TestQuick: a quick run can break every claim about steady traffic, and the first two about
// clients that never let go.
func TestQuick(t *testing.T) {
	o := &options{scale: 0.5, repeat: 1, stops: 2, scenes: []scene{steady, kept, sparse}, run: quick}
	f := &findings{Trials: o.plan()}
	for _, trial := range f.Trials {
		for range trial.lags {
			trial.Stops = append(trial.Stops, &stop{})
		}
	}
	claims := 0
	for _, cells := range rows("claims.txt") {
		if in := scene(cells[0]); in == steady || in == kept && cells[2] != "closes" {
			claims++
		}
	}
	var out strings.Builder
	f.judge(&out)
	if got := strings.Count(out.String(), "\n"); got != claims+1 {
		t.Errorf("%d claims, want %d and that the machine is quiet:\n%s", got, claims, &out)
	}
}

// TestFlags: time is compressed in flags too. The pictures have flags as they are.
func TestFlags(t *testing.T) {
	for c, want := range map[string]string{
		defaultHold: "--grace-period=30s --rewrite=TERM:10 --max-delay=9.5s --quiet-for=2s --until=quiet",
		"anatomy":   "--grace-period=30s --rewrite=TERM:10 --max-delay=9.5s --quiet-for=2s --until=quiet --delay=1s",
	} {
		if got := strings.Join(contenderOf(c).flags(0.5, serverOf("haproxy")), " "); got != want {
			t.Errorf("%s: %q, want %q", c, got, want)
		}
	}
}

// TestPause: random gaps have the planned mean, and only those of sparse traffic are
// compressed.
func TestPause(t *testing.T) {
	const draws = 100_000
	r := rand.New(rand.NewPCG(1, 2))
	for name, want := range map[string]time.Duration{
		"go": 25 * time.Millisecond, "dies": 5 * time.Millisecond, "thin": time.Second / 12 * 5,
		"bursty": 250 * time.Millisecond,
	} {
		s, sum := serverOf(name), time.Duration(0)
		for range draws {
			sum += s.pause(r, 0.5)
		}
		if mean := sum / draws; mean < want*97/100 || mean > want*103/100 {
			t.Errorf("%s: the mean gap is %v, want %v", name, mean, want)
		}
	}
}

// TestKubeProxy: new connections go to all replicas, at random or by turns, until a replica is
// removed, and until then stragglers go there from the last node.
func TestKubeProxy(t *testing.T) {
	for _, name := range []string{"stragglers", "demo"} {
		k := newKubeProxy(serverOf(name), 1)
		old := &replica{addr: "old"}
		k.add(old)
		k.add(&replica{addr: "other"})
		between := func(state string, low, high float64) {
			const picks = 10_000
			n := 0.0
			for range picks {
				if k.pick() == "old" {
					n++
				}
			}
			if n < low*picks || n > high*picks {
				t.Errorf("%s: %s: %v of %d", name, state, n, picks)
			}
		}
		between("before", 0.47, 0.53)
		k.removeSoon(old)
		between("removed from most nodes", 0.4*lateShare, 0.6*lateShare)
		k.remove(old)
		between("removed", 0, 0)
	}
}

// played returns the trials of rows "server | contender | kind of failure | failed | stop", of
// four stops each, with a word "stalled" or "killed" behind, and then what watch counted.
func played(text string) (all []*trial) {
	for _, cells := range stage.Rows(text) {
		t := &trial{Contender: cells[1], Server: cells[0], server: serverOf(cells[0]), Stalled: cells[5] == "stalled"}
		for range 4 {
			t.Stops = append(t.Stops, &stop{Requests: 100, StopMS: ms(duration(cells[4])), Killed: cells[5] == "killed"})
		}
		if failed, _ := strconv.Atoi(cells[3]); failed > 0 {
			t.Stops[0].Failed = map[load.Kind]int{load.Kind(cells[2]): failed}
		}
		if refused, err := strconv.Atoi(cells[6]); err == nil {
			t.Stops[0].Watch = &cost{Cut: new(1), Refused: new(refused - 1)}
		}
		all = append(all, t)
	}
	return all
}

// TestJudge: each block of rows breaks the claim in its first line, or no claim.
func TestJudge(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/judge.txt"))
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		name, list, _ := strings.Cut(block, "\n")
		name, broken, _ := strings.Cut(strings.TrimPrefix(name, "# "), ": ")
		var out strings.Builder
		(&findings{Trials: played(list)}).judge(&out)
		all := append(regexp.MustCompile("BROKEN.*").FindAllString(out.String(), -1), "no claim")
		if !strings.Contains(all[0], broken) || len(all) > 2 {
			t.Errorf("%s: broken is %q, want %q", name, all, broken)
		}
	}
}

// texts returns the texts of a well-formed SVG document, a line each.
func texts(document string) string {
	var svg struct {
		Texts []string `xml:"text"`
	}
	must.Do(xml.Unmarshal([]byte(document), &svg))
	return strings.Join(svg.Texts, "\n")
}

// TestTables: the tables and the chart have the figures of the contenders.
func TestTables(t *testing.T) {
	f := &findings{Scale: 1, Trials: played(`go | bare | cut | 396 | 0s
		go | tini | cut | 395 | 0s
		go | sleep 14, then tini | cut | 0 | 14s
		go | lameduck --until=quiet | cut | 0 | 6.8s
		pool | lameduck --until=settled | 5xx | 3 | 4s
		graceful | sleep 20, then tini | reset | 2 | 20s
		dies | sleep 20, then tini | cut | 7 | 20s`)}
	f.Trials[3].Stops[0].StopMS, f.Trials[3].Stops[1].StopMS = 1000, 9000
	f.Trials[4].Stops[0].Reports = stage.Reports("the server's line\n" +
		`{"message":"TERM: holding 5 s","ended":null,"lull":null}` + "\n" +
		`{"message":"TERM: held 5.0 s","ended":"kept","lull":true}` + "\n")
	var out strings.Builder
	f.print(&out)
	out.WriteString(texts(f.draw()) + "\n")
	if want := string(must.Get(os.ReadFile("testdata/tables.txt"))); out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	f.Trials[3].Stops[0].Failed = map[load.Kind]int{load.Reset: 1}
	if text := f.headline(); strings.Contains(text, "none") {
		t.Errorf("a hold that loses: %q", text)
	}
}

// TestPictures: the pictures of the pages are of runs in which all claims hold.
func TestPictures(t *testing.T) {
	for _, name := range []string{"demo", "stop"} {
		f := readFindings("testdata/" + name + ".json")
		if err := f.judge(io.Discard); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		picture := f.draw()
		texts(picture)
		page := must.Get(os.ReadFile("../../../../docs/" + name + ".svg"))
		if string(page) != picture {
			t.Errorf("docs/%s.svg is not the picture of the figures in testdata: make pictures", name)
		}
	}
}
