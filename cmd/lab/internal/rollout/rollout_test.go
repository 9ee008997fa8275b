package rollout

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/proc"
	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// TestMain makes the test binary the laboratory too.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "rollout" && os.Args[1] != "demo" {
		os.Exit(m.Run())
	}
	command := map[string]func(context.Context, []string, io.Writer) error{"rollout": Run, "demo": Demo}[os.Args[1]]
	if role := Roles[os.Args[2]]; role != nil {
		command = func(_ context.Context, args []string, _ io.Writer) error { return role(args[1:]) }
	}
	if err := command(context.Background(), os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// TestBroken shows that the laboratory can fail: the claims about a lameduck that does not
// hold are broken.
func TestBroken(t *testing.T) {
	const script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
	lameduck := filepath.Join(t.TempDir(), "lameduck")
	must.Do(os.WriteFile(lameduck, []byte(script), 0o755))
	for name, args := range map[string][]string{
		"lameduck":  {"demo"},
		defaultHold: {"rollout", "-scale=0.4", "-n=1", `-run=steady: go \| ` + defaultHold + "$"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command("/proc/self/exe", append(args, lameduck)...).CombinedOutput()
			if regexp.MustCompile("cannot make namespaces|not found in").Match(out) {
				t.Skipf("%s", out)
			}
			broken := regexp.MustCompile("BROKEN.*" + name + " loses none")
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !broken.Match(out) {
				t.Errorf("ended with %v:\n%s", err, out)
			}
		})
	}
}

// TestInterrupted: an interrupted demo leaves no process.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &options{scenes: []scene{demo}, scale: 1, repeat: 1, jobs: 4, stops: 1, run: "sleep"}
	trials := must.Get(o.plan())
	time.AfterFunc(700*time.Millisecond, cancel)
	if err := o.playAll(ctx, trials); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if children := proc.Children(os.Getpid()); len(children) > 0 {
		t.Errorf("children are left: %v", children)
	}
}

// pipes are a listener whose connections begin in the test: a write to a pipe returns when the
// server has read it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Addr() net.Addr { return nil }

func (p pipes) Close() error {
	close(p)
	return nil
}

// TestAccept: in the end, requests in flight are answered, and kept connections closed.
func TestAccept(t *testing.T) {
	listener := make(pipes)
	ended := make(chan bool)
	go func() {
		accept(listener)
		close(ended)
	}()
	dial := func() *load.Conn {
		conn, server := net.Pipe()
		listener <- server
		return &load.Conn{Conn: conn, In: bufio.NewReader(conn)}
	}
	idle, busy := dial(), dial()
	if answer, err := idle.HTTP("/0s", "", true); err != nil || answer.Status != 200 || answer.Size != 6 {
		t.Fatalf("%+v, %v", answer, err)
	}
	io.WriteString(busy, "GET /200ms HTTP/1.1\r\n\r\n")
	listener.Close()
	if _, err := idle.In.ReadByte(); err != io.EOF {
		t.Errorf("a kept connection: %v", err)
	}
	if text, err := io.ReadAll(busy.In); err != nil || !strings.HasSuffix(string(text), "\r\n\r\nserved") {
		t.Errorf("a request in flight: %q, %v", text, err)
	}
	<-ended
}

// TestPlan: every contender meets every server of its scenes and the same lags, which the seed
// decides, and scaling keeps the lags in proportion.
func TestPlan(t *testing.T) {
	o := &options{seed: 7, scale: 0.5, repeat: 2, stops: 4, scenes: []scene{steady, kept, sparse}}
	halves, again := must.Get(o.plan()), must.Get(o.plan())
	o.scale = 1
	played := map[string]int{}
	lags := map[string][]drawn{}
	for i, a := range must.Get(o.plan()) {
		if !reflect.DeepEqual(halves[i].lags, again[i].lags) || a.Contender != again[i].Contender {
			t.Fatalf("trial %d is another one the second time", i)
		}
		played[a.Contender+a.Server]++
		key := fmt.Sprint(a.Server, a.Repetition)
		if lags[key] == nil {
			lags[key] = a.lags
		}
		if !reflect.DeepEqual(a.lags, lags[key]) {
			t.Errorf("%s has other lags with %s", a.Contender, a.Server)
		}
		met := map[string]bool{}
		for j, d := range a.lags {
			met[d.Name] = true
			if d.Lag < 200*time.Millisecond || d.Lag > longestLag || (d.Lag-2*halves[i].lags[j].Lag).Abs() > 2 {
				t.Errorf("%s: %v, at half the time %v", a.Server, d, halves[i].lags[j])
			}
		}
		if len(met) != len(steady.lags()) {
			t.Errorf("%s: not every distribution: %v", a.Server, a.lags)
		}
	}
	for _, c := range contenders {
		for _, s := range servers {
			want := 0
			if c.plays(s.scene) && s.scene != demo && s.scene != anatomy {
				want = 2
			}
			if played[c.name+s.name] != want {
				t.Errorf("%s plays %d times with %s, want %d", c.name, played[c.name+s.name], s.name, want)
			}
		}
	}
}

// TestQuick: a quick run can break every claim about steady traffic, and the first two about
// clients that never let go.
func TestQuick(t *testing.T) {
	o := &options{scale: 0.5, repeat: 1, stops: 2, scenes: []scene{steady, kept, sparse}, run: quick}
	f := &findings{Trials: must.Get(o.plan())}
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
	if got := judge(f); len(got) != claims+1 {
		t.Errorf("%d claims, want %d and that the machine is quiet: %v", len(got), claims, got)
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		contender, server string
		scale             scale
		want              string
	}{
		{defaultHold, "go", 1, "--grace-period=30s --until=quiet"},
		{defaultHold, "haproxy", 0.5, "--grace-period=30s --rewrite=TERM:10 --max-delay=9.5s --quiet-for=2s --until=quiet"},
		{"lameduck --until=quiet --delay=10", "thin", 0.5,
			"--grace-period=30s --max-delay=9.5s --quiet-for=2s --until=quiet --delay=5s"},
	} {
		if got := strings.Join(contenderOf(c.contender).flags(c.scale, serverOf(c.server)), " "); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.contender, c.server, got, c.want)
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

// TestKubeProxy: new connections go to all replicas until a replica is removed, and until
// then stragglers go there from the last node.
func TestKubeProxy(t *testing.T) {
	for name, share := range map[string]float64{"dies": 0, "stragglers": lateShare, "demo": 0} {
		k := newKubeProxy(serverOf(name), 1)
		old := &replica{process: &process{addr: "old"}}
		k.add(old)
		k.add(&replica{process: &process{addr: "other"}})
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
		between("removed from most nodes", 0.4*share, 0.6*share)
		k.remove(old)
		between("removed", 0, 0)
	}
}

// TestCells: a column of a row is there once all its requests have ended.
func TestCells(t *testing.T) {
	l := &sender{began: time.Now()}
	for i := range 3*eachColumn - 1 {
		kind := load.Answered
		if i == eachColumn {
			kind = load.Cut
		}
		l.results = append(l.results, result{planned: l.began.Add(time.Duration(i) * time.Second / demoRate), kind: kind})
	}
	trial := &trial{Contender: "bare", load: l}
	if got, want := trial.row(), "bare      .x"; got != want {
		t.Errorf("the row is %q, want %q", got, want)
	}
}

// played returns the trials of rows "server | contender | kind of failure | failed | stop", of
// four stops each, with a word "stalled" or "killed" behind.
func played(text string) (all []*trial) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) < 5 {
			continue
		}
		failed, _ := strconv.Atoi(cells[3])
		word := cells[len(cells)-1]
		t := &trial{Contender: cells[1], Server: cells[0], server: serverOf(cells[0]), Stalled: word == "stalled"}
		for range 4 {
			t.Stops = append(t.Stops, &stop{drawn: drawn{Lag: 3 * time.Second}, Requests: 100,
				StopMS: ms(duration(cells[4])), Killed: word == "killed"})
		}
		if failed > 0 {
			t.Stops[0].Failed = map[load.Kind]int{load.Kind(cells[2]): failed}
		}
		all = append(all, t)
	}
	return all
}

// TestJudge: each block of rows breaks the claim in its first line, or none.
func TestJudge(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/judge.txt"))
	for block := range strings.SplitSeq(string(text), "\n\n") {
		name, list, _ := strings.Cut(block, "\n")
		name, broken, _ := strings.Cut(strings.TrimPrefix(name, "# "), ": ")
		var texts []string
		for _, claim := range judge(&findings{Trials: played(list)}) {
			if !claim.holds {
				texts = append(texts, claim.text)
			}
		}
		all := strings.Join(texts, "\n")
		if (broken == "none") != (all == "") || broken != "none" && !strings.Contains(all, broken) || len(texts) > 1 {
			t.Errorf("%s: broken are %q, want %q", name, texts, broken)
		}
	}
}

func TestReports(t *testing.T) {
	s := &stop{Reports: reports("the server's line\n" + `{"message":"TERM: holding 5 s","ended":null,"lull":null}` + "\n" +
		`{"message":"TERM: held 5.0 s","ended":"kept","lull":true}` + "\n")}
	p := (&findings{Trials: []*trial{{server: serverOf("go"), Stops: []*stop{s}}}}).part(steady, "", "")
	if got := p.how(); got != "kept at a lull 1" || len(s.Reports) != 2 || s.report().Message != "TERM: held 5.0 s" {
		t.Errorf("%q, %+v", got, s)
	}
}

// texts returns the texts of a well-formed SVG document, a line each.
func texts(document string) string {
	var lines []string
	for in := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(lines[2:], "\n") // without the title and the style
		}
		must.Do(err)
		if text, ok := token.(xml.CharData); ok && len(strings.TrimSpace(string(text))) > 0 {
			lines = append(lines, string(text))
		}
	}
}

// TestTables: the tables and the chart have the figures of the contenders, and what was saved
// gives the same chart again.
func TestTables(t *testing.T) {
	f := &findings{Scale: 1, Trials: played(`
		go | bare | cut | 396 | 0s
		go | tini | cut | 395 | 0s
		go | sleep 14, then tini | cut | 0 | 14s
		go | lameduck --until=quiet | cut | 0 | 6.8s
		graceful | sleep 20, then tini | reset | 2 | 20s
		dies | sleep 20, then tini | cut | 7 | 20s`)}
	f.Trials[3].Stops[0].StopMS, f.Trials[3].Stops[1].StopMS = 1000, 9000
	want := string(must.Get(os.ReadFile("testdata/tables.txt")))
	var out strings.Builder
	f.print(&out)
	path := filepath.Join(t.TempDir(), "figures")
	must.Do(f.save(path))
	if got := out.String() + texts(must.Get(readFindings(path)).draw()) + "\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f.Trials[3].Stops[0].Failed = map[load.Kind]int{load.Reset: 1}
	if text := f.headline(); strings.Contains(text, "none") {
		t.Errorf("a hold that loses: %q", text)
	}
}

// TestPictures: the pictures of the pages are of runs in which all claims hold.
func TestPictures(t *testing.T) {
	for _, name := range []string{"demo", "stop"} {
		f := must.Get(readFindings("testdata/" + name + ".json"))
		if err := verdict(io.Discard, f); err != nil {
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
