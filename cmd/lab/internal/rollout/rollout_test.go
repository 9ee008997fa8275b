package rollout

import (
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

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// TestMain makes the test binary the laboratory too.
func TestMain(m *testing.M) {
	commands := map[string]func(args []string) error{
		"demo": func(args []string) error { return Demo(context.Background(), args, os.Stdout) },
		"rollout": func(args []string) error {
			if role := Roles[args[0]]; role != nil {
				return role(args[1:])
			}
			return Run(context.Background(), args, os.Stdout)
		},
	}
	if len(os.Args) < 3 || commands[os.Args[1]] == nil {
		os.Exit(m.Run())
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// TestBroken shows that the laboratory can fail: the claims about a lameduck that does not
// hold are broken.
func TestBroken(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		broken string
	}{
		"demo": {[]string{"demo"}, demoHold + " loses nothing"},
		"rollout": {[]string{"rollout", "-scale=0.4", "-n=1", `-run=steady: go \| ` + defaultHold + "$"},
			defaultHold + " loses nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lameduck := filepath.Join(t.TempDir(), "lameduck")
			script := "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n"
			if err := os.WriteFile(lameduck, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("/proc/self/exe", append(c.args, lameduck)...).CombinedOutput()
			if regexp.MustCompile("cannot make namespaces|not found in").Match(out) {
				t.Skipf("%s", out)
			}
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !regexp.MustCompile("BROKEN.*"+c.broken).Match(out) {
				t.Errorf("ended with %v:\n%s", err, out)
			}
		})
	}
}

// TestInterrupted: an interrupted demo leaves no process.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := &options{scenes: []scene{demo}, scale: 1, repeat: 1, jobs: 4, exe: "/proc/self/exe", lameduck: "/bin/false",
		run: regexp.MustCompile("sleep")}
	time.AfterFunc(700*time.Millisecond, cancel)
	began := time.Now()
	trials, err := plan(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := runAll(ctx, o, trials); !errors.Is(err, context.Canceled) || time.Since(began) > 5*time.Second {
		t.Errorf("ended with %v after %v", err, time.Since(began))
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		if children, _ := os.ReadFile(task); len(children) > 0 {
			t.Errorf("children are left: %s", children)
		}
	}
}

// TestFinish: on TERM, requests in flight are answered, and kept connections closed.
func TestFinish(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := &site{idle: map[net.Conn]bool{}}
	go s.accept(listener)
	dial := func() *load.Conn {
		conn, err := load.Dial(listener.Addr().String(), time.Now().Add(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	idle, busy := dial(), dial()
	if answer, err := idle.HTTP("/0s", "", true); err != nil || answer.Status != 200 || answer.Size != 6 {
		t.Fatalf("%+v, %v", answer, err)
	}
	answered := make(chan error)
	go func() {
		_, err := busy.HTTP("/200ms", "duck", true)
		answered <- err
	}()
	time.Sleep(50 * time.Millisecond)
	s.finish()
	if err := <-answered; err != nil {
		t.Errorf("a request in flight was not answered: %v", err)
	}
	if _, err := idle.In.ReadByte(); err != io.EOF {
		t.Errorf("a kept connection: %v", err)
	}
}

// TestPlan: every contender meets every server of its scenes and the same lags, which the seed
// decides, and scaling keeps the lags in proportion.
func TestPlan(t *testing.T) {
	o := &options{seed: 7, scale: 0.5, repeat: 2, scenes: []scene{steady, kept, sparse}, run: regexp.MustCompile("")}
	halves, _ := plan(o)
	again, _ := plan(o)
	o.scale = 1
	trials, err := plan(o)
	if err != nil {
		t.Fatal(err)
	}
	played := map[string]int{}
	lags := map[string][]drawn{}
	for i, a := range trials {
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
	for _, c := range contenders() {
		for _, s := range servers() {
			want := 0
			if c.plays(s.scene) && s.scene != demo && s.scene != anatomy {
				want = 2
			}
			if played[c.name+s.name] != want {
				t.Errorf("%s plays %d times with %s, want %d", c.name, played[c.name+s.name], s.name, want)
			}
		}
	}
	for s, names := range chartRows {
		for _, name := range names {
			if !contenderOf(name).plays(s) {
				t.Errorf("%s of the chart does not play in %s", name, s)
			}
		}
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
		{shortHold, "go", 1, "--grace-period=30s --until=quiet --quiet-for=1s"},
		{floored, "thin", 1, "--grace-period=30s --until=quiet --delay=10s"},
		{defaultHold, "dies", 0.5, "--grace-period=1m0s --max-delay=24.5s --quiet-for=2s --until=quiet"},
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
	const picks = 10_000
	for name, stragglers := range map[string]bool{"dies": false, "stragglers": true} {
		k := openKubeProxy(serverOf(name), 1)
		old, other := &replica{addr: "old"}, &replica{addr: "other"}
		k.add(old)
		k.add(other)
		between := func(state string, low, high float64) {
			n := 0.0
			for range picks {
				if k.pick() == "old" {
					n++
				}
			}
			if n < low*picks || n > high*picks {
				t.Errorf("stragglers %v: %s: %v of %d", stragglers, state, n, picks)
			}
		}
		between("before", 0.47, 0.53)
		k.removeSoon(old)
		if stragglers {
			between("removed from most nodes", 0.4*lateShare, 0.6*lateShare)
		} else {
			between("removed from all nodes", 0, 0)
		}
		k.remove(old)
		between("removed", 0, 0)
	}
}

// TestCells: a column of a row is there once all its requests have ended.
func TestCells(t *testing.T) {
	l := &sender{began: time.Now()}
	for i := range 3 * eachColumn {
		kind := load.Answered
		if i == eachColumn {
			kind = load.Cut
		}
		if i < 3*eachColumn-1 {
			l.results = append(l.results, result{planned: l.began.Add(time.Duration(i) * time.Second / demoRate), kind: kind})
		}
	}
	if got, want := l.cells(), []cell{{eachColumn, 0}, {eachColumn, 1}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	trial := &trial{Contender: "bare", load: l}
	if got := trial.row(); got != "bare      .x" {
		t.Errorf("the row is %q", got)
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
			t.Stops = append(t.Stops, &stop{Requests: 100, StopMS: ms(duration(cells[4])), Killed: word == "killed"})
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
	text, err := os.ReadFile("testdata/judge.txt")
	if err != nil {
		t.Fatal(err)
	}
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

func TestQuantile(t *testing.T) {
	p := &part{times: []float64{1, 2, 4}}
	if p.median() != 2 || p.quantile(0.95) != 4 || (&part{}).median() != 0 {
		t.Errorf("%v, %v, %v", p.median(), p.quantile(0.95), (&part{}).median())
	}
}

func TestReports(t *testing.T) {
	s := &stop{Reports: reports("the server's line\n" + `{"message":"TERM: holding 5 s","ended":null,"lull":null}` + "\n" +
		`{"message":"TERM: held 5.0 s","ended":"kept","lull":true}` + "\n")}
	if got := s.ended(); got != "kept at a lull" || len(s.Reports) != 2 || s.last().Message != "TERM: held 5.0 s" {
		t.Errorf("%q, %+v", got, s)
	}
}

// texts returns the texts of a well-formed SVG document.
func texts(t *testing.T, document string) string {
	t.Helper()
	var all strings.Builder
	for in := xml.NewDecoder(strings.NewReader(document)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if text, ok := token.(xml.CharData); ok {
			all.Write(text)
		}
	}
}

// TestTables: the chart and the tables have the figures of their contenders, and what was
// saved gives the same chart and claims again.
func TestTables(t *testing.T) {
	f := &findings{Scale: 1, Trials: played(`
		go | bare | cut | 396 | 0s
		go | tini | cut | 395 | 0s
		go | sleep 14, then tini | cut | 0 | 14s
		go | lameduck --until=quiet | cut | 0 | 6.8s
		dies | sleep 20, then tini | cut | 7 | 20s`)}
	path := filepath.Join(t.TempDir(), "figures")
	if err := f.save(path); err != nil {
		t.Fatal(err)
	}
	f, err := readFindings(path)
	if err != nil {
		t.Fatal(err)
	}
	drawn := texts(t, f.draw())
	for _, want := range []string{"tini", "395", safeSleep[:8], "14.0 s", defaultHold, "6.8 s", "sleep 20", titles[kept],
		"lameduck fails none of 400 requests, 6.8 s a stop; a sleep longer than every lag: 14.0 s"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in the chart:\n%s", want, drawn)
		}
	}
	if strings.Contains(drawn, "396") {
		t.Error("a contender that is not chosen is drawn")
	}
	f.Trials[3].Stops[0].Failed = map[load.Kind]int{load.Reset: 1}
	if text := f.headline(); strings.Contains(text, "none") {
		t.Errorf("a hold that loses: %q", text)
	}
	var out strings.Builder
	printTables(&out, f)
	for _, want := range []string{titles[steady] + ", 4 stops each:",
		"| 400 | 395 | 1 | 0.0 s | 0.0 s | 395 cut |", "| 400 | 7 | 0 | 20.0 s | 20.0 s | 7 cut |"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// TestPictures: the pictures of the pages have the figures of runs in which all claims hold.
func TestPictures(t *testing.T) {
	for name, want := range map[string]func(*trial) []string{
		"demo": func(t *trial) []string {
			return []string{t.Contender, contenderOf(t.Contender).how(t.server), "gone after " + seconds(t.Stops[0].StopMS)}
		},
		"stop": func(t *trial) []string {
			r := t.Stops[0].last()
			return []string{fmt.Sprintf("%d, the last at +%s", r.Accepted, inSeconds(r.LastNewMS)),
				"last request, +" + inSeconds(r.LastByteMS),
				fmt.Sprintf("held %s, until %s", inSeconds(r.HeldMS), r.Ended), "ceiling " + inSeconds(r.CeilingMS),
				"signal: TERM, +" + inSeconds(r.Sent[0].AtMS), "exit: 0, +" + inSeconds(r.UsedMS)}
		},
	} {
		f, err := readFindings("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if err := verdict(io.Discard, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		picture := f.draw()
		page, err := os.ReadFile("../../../../docs/" + name + ".svg")
		if err != nil || string(page) != picture {
			t.Errorf("docs/%s.svg is not the picture of the figures in testdata (%v): make pictures", name, err)
		}
		all := texts(t, picture)
		for _, trial := range f.Trials {
			for _, text := range want(trial) {
				if !strings.Contains(all, text) {
					t.Errorf("docs/%s.svg has no text %q", name, text)
				}
			}
		}
	}
}
