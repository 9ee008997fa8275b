package kept

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/cmd/lab/load"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// contenders are lameduck's flags, and sleep, which has tini. Holds until settled and quiet
// are shorter than by default, which changes no loss.
var contenders = []string{
	sleep,
	"--until=settled --quiet-for=1s",
	atLull,
	"--until=quiet --close-idle",
}

const (
	sleep    = "sleep 8"
	atLull   = "--until=quiet --quiet-for=1s"
	sleepFor = 8 * time.Second
)

// kind is a line of the table.
type kind struct {
	Server    string        `json:"server"`
	Think     time.Duration `json:"think_ns"` // of a request, on average
	Contender string        `json:"contender"`
}

func (k kind) String() string { return fmt.Sprintf("%s | %v | %s", k.Server, k.Think, k.Contender) }

// trial is one stop.
type trial struct {
	kind
	outcome

	row    *row
	think  time.Duration
	err    error
	number int
	lag    time.Duration // from TERM to the last new connection, on average
	dir    string
	old    *replica
	other  *replica
	client client
	mu     sync.Mutex // guards the rest: every request has a goroutine
	target string     // of new connections
	asked  int
	term   time.Time
	failed []failure
}

// failure is that of a request.
type failure struct {
	name string
	err  error
	at   time.Time
}

// outcome is what became of a trial.
type outcome struct {
	Requests int    `json:"requests"` // from TERM to the server's exit
	Lost     []loss `json:"lost,omitempty"`
	Twice    int    `json:"twice,omitempty"` // requests that were processed twice
	stage.Report
}

// loss is a request that failed.
type loss struct {
	AtMS      float64 `json:"at_ms"` // after TERM
	Error     string  `json:"error"`
	Processed bool    `json:"processed"`
	Signal    bool    `json:"signal"` // after the hold
}

// replica is a server, PID 1 of a namespace.
type replica struct {
	*stage.Program
	host string
}

const (
	warm  = 1500 * time.Millisecond
	after = 500 * time.Millisecond // of load, when the server has gone
	grace = 75 * time.Second
)

// address returns the address of the old server, 2, or of the other, 1: the two ends of a
// veth.
func (t *trial) address(end int) string {
	return fmt.Sprintf("10.%d.%d.%d", 1+t.number/250, 1+t.number%250, end)
}

// start starts both servers and the client.
func (t *trial) start(ctx context.Context, shared string) {
	t.dir = filepath.Join(shared, fmt.Sprint(t.number))
	must.Do(os.Mkdir(t.dir, 0o755))
	words := append([]string{shared + "/lameduck", "--log-format=json", "--grace-period=60", "--preset=auto"}, strings.Fields(t.Contender)...)
	if t.Contender == sleep {
		words = []string{"tini"}
	}
	t.old = t.launch(ctx, shared, 2, append(words, "--"), t.row.server)
	t.other = t.launch(ctx, shared, 1, nil, t.row.other())
	t.other.Await(ctx, t.other.host, plays.Port)
	t.old.Await(ctx, t.old.host, plays.Port)
	t.aim(t.old)
	t.client = newClient(t.row, t.pick, t.dir)
	must.Do(t.client.do("first", time.Millisecond))
}

// launch starts a server without privileges, behind words, if any: then in a network of its own.
func (t *trial) launch(ctx context.Context, shared string, end int, words, server []string) *replica {
	p := &replica{host: t.address(end)}
	dir := filepath.Join(t.dir, fmt.Sprint(end))
	must.Do(os.Mkdir(dir, 0o755))
	must.Do(os.Chown(dir, nobody, nobody))
	peers.WriteCertificate(dir)
	unprivileged := []string{"setpriv", fmt.Sprint("--reuid=", nobody), fmt.Sprint("--regid=", nobody), "--clear-groups",
		"--no-new-privs", "--inh-caps=-all"}
	all := slices.Concat(unprivileged, words, []string{"sh", "-ec", peers.Script(server[0])}, server)
	cmd := stage.Linked(ctx, all...)
	if words == nil {
		cmd = stage.Init(ctx, false, all...)
	}
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "HOME="+dir, "SHARED="+dir, "LAB="+shared+"/lab",
		"HOST="+p.host, fmt.Sprintf("UPSTREAM=%s:%d", t.address(1), plays.Port))
	p.Program = stage.Start(cmd)
	if words != nil {
		p.Link(fmt.Sprintf("trial%d", t.number), t.address(1), p.host, nil)
	}
	return p
}

const nobody = 65534

// aim sends new connections to a replica.
func (t *trial) aim(p *replica) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = p.host
	os.WriteFile(t.dir+"/next", []byte(p.host+" lab\n"), 0o644) // as in hosts(5)
	os.Rename(t.dir+"/next", t.dir+"/target")
}

func (t *trial) pick() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.target + ":8080"
}

// play stops the old server under load.
func (t *trial) play(ctx context.Context) {
	var all sync.WaitGroup
	for range conns {
		all.Go(func() { t.ask(100 * time.Millisecond) })
	}
	all.Wait()
	loaded, unload := context.WithCancel(ctx)
	defer unload()
	all.Go(func() { t.load(loaded, &all) })
	if t.row.probe {
		all.Go(func() { t.probe(loaded) })
	}
	time.Sleep(warm)
	t.term = time.Now()
	asked := t.count()
	if t.Contender == sleep {
		t.Ended, t.HeldMS = "elapsed", sleepFor.Milliseconds()
		time.AfterFunc(sleepFor, func() { t.old.Process.Signal(t.row.stop) })
	} else {
		t.old.Process.Signal(syscall.SIGTERM)
	}
	removal := time.AfterFunc(t.lag+rand.N(time.Second)-500*time.Millisecond, func() { t.aim(t.other) })
	defer removal.Stop()
	kill := time.AfterFunc(grace, func() { t.old.Process.Kill() })
	defer kill.Stop()
	<-t.old.Gone
	t.Requests = t.count() - asked
	time.Sleep(after)
	unload()
	all.Wait()
	must.Do(ctx.Err())
	t.judge()
}

// load sends requests at random times, of which 12 are under way on average, or 100 a second.
func (t *trial) load(ctx context.Context, all *sync.WaitGroup) {
	think := t.Think
	if t.row.slow {
		think = think * 19 / 10
	}
	mean := float64(max(think/12, 10*time.Millisecond))
	for ctx.Err() == nil {
		gap := time.Duration(rand.ExpFloat64() * mean)
		if t.row.steady {
			gap = 5 * time.Millisecond
		}
		time.Sleep(gap)
		think := time.Duration((0.5 + rand.Float64()) * float64(t.Think))
		if t.row.slow && rand.IntN(10) == 0 {
			think *= 10
		}
		all.Go(func() { t.ask(think) })
	}
}

// probe asks the old server each second, as a readiness probe does.
func (t *trial) probe(ctx context.Context) {
	for ctx.Err() == nil {
		(&load.Client{Addr: t.old.host + ":8080"}).HTTP("/ready", "", time.Now().Add(time.Second))
		time.Sleep(time.Second)
	}
}

func (t *trial) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

func (t *trial) ask(think time.Duration) {
	t.mu.Lock()
	t.asked++
	name := fmt.Sprintf("t%dn%d", t.number, t.asked)
	t.mu.Unlock()
	err := t.client.do(name, think)
	if err != nil {
		t.mu.Lock()
		t.failed = append(t.failed, failure{name, err, time.Now()})
		t.mu.Unlock()
	}
}

var names = regexp.MustCompile(`\bt\d+n\d+\b`)

// judge compares the failures with what the servers have printed.
func (t *trial) judge() {
	said := t.old.Said()
	if r := stage.LastReport(stage.Reports(said)); r != nil {
		t.Report = *r
	}
	must.Be(t.Ended != "", "no report:\n%s", said)
	processed := map[string]int{}
	for _, name := range names.FindAllString(said+t.other.Said(), -1) {
		processed[name]++
		if processed[name] == 2 {
			t.Twice++
		}
	}
	for _, f := range t.failed {
		at := f.at.Sub(t.term).Seconds() * 1000
		must.Be(at >= 0, "a request failed before TERM: %v", f.err)
		t.Lost = append(t.Lost, loss{at, f.err.Error(), processed[f.name] > 0, at > float64(t.HeldMS)})
	}
	must.Be(len(processed) >= t.asked/2, "%d of %d requests are in the logs:\n%s", len(processed), t.asked, said)
}

func (t *trial) close() {
	if t.client != nil {
		t.client.close()
	}
	for _, p := range []*replica{t.old, t.other} {
		if p != nil {
			p.Close()
		}
	}
	os.RemoveAll(t.dir)
}
