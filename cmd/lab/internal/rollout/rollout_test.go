package rollout

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/lameduck-init/lameduck/internal/plays"
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
		`(?s)bare +\.[.x]*x[.x]*\. 0\.\d s, \d+ failed.*BROKEN  demo, all: lameduck: lost`: {"demo"},
		`(?s)\| lameduck --until=quiet +\| \d+ .*<text x="8">lameduck.*BROKEN  steady, all: lameduck --until=quiet: lost.*BROKEN  lameduck watch`: {
			"rollout", "-quick", "-svg=/dev/stdout", `-run=steady: go \| lameduck --until=quiet$`},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("/proc/self/exe", append(args, lameduck)...).CombinedOutput()
			if regexp.MustCompile("cannot make namespaces|not found").Match(out) {
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
	o := &options{scenes: []scene{demo}, repeat: 1, jobs: 4, stops: 1,
		lone: true, lameduck: script(t, `"$@"; exit`, "sleep 60")}
	trials := o.plan()
	time.AfterFunc(700*time.Millisecond, cancel)
	o.playAll(ctx, trials, func() {})
	if children := proc.Children(os.Getpid()); len(children) > 0 {
		t.Errorf("children are left: %v", children)
	}
}

// played returns the trials of rows "server | contender | kind of failure | failed | stop", of
// four stops each, with a word "stalled" or "killed" behind, and then what watch counted.
func played(text string) (all findings) {
	for _, cells := range plays.Rows(text) {
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
	must.Do(json.Unmarshal(must.Get(os.ReadFile("testdata/demo.json")), &f))
	for _, t := range f {
		t.server = serverOf(t.Server)
		t.contender = contenders[slices.IndexFunc(contenders, func(c *contender) bool { return c.name == t.Contender })]
	}
	if err := f.judge(io.Discard); err != nil {
		t.Error(err)
	}
	picture := f.draw()
	const page = "../../../../docs/demo.svg"
	if os.Getenv("REDRAW") != "" {
		os.WriteFile(page, []byte(picture), 0o644)
	}
	if string(must.Get(os.ReadFile(page))) != picture {
		t.Error("docs/demo.svg is not the picture of the figures in testdata: make pictures")
	}
}
