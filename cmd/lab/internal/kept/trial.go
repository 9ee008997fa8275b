package kept

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
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

	row     *row
	think   time.Duration
	err     error
	number  int
	dir     string
	old     *replica
	other   *replica
	client  client
	mu      sync.Mutex // guards the rest: every request has a goroutine
	target  string     // of new connections
	asked   int
	term    time.Time
	failure map[string]error
	at      map[string]time.Time // of a failure
}

// outcome is what became of a trial.
type outcome struct {
	Requests int    `json:"requests"` // from TERM to the server's exit
	Lost     []loss `json:"lost,omitempty"`
	Twice    int    `json:"twice,omitempty"` // requests that were processed twice
	report
}

// loss is a request that failed.
type loss struct {
	AtMS      float64 `json:"at_ms"` // after TERM
	Error     string  `json:"error"`
	Processed bool    `json:"processed"`
	Signal    bool    `json:"signal"` // after the hold
}

// report has the names of lameduck's report in JSON; see docs/report.md.
type report struct {
	Ended    string  `json:"ended"`
	HeldMS   float64 `json:"held_ms"`
	Closed   int     `json:"closed_idle"`
	CameBack int     `json:"came_back"`
	InFlight int     `json:"in_flight"`
}

// replica is a server, PID 1 of a namespace.
type replica struct {
	cmd     *exec.Cmd
	dir     string
	log     *os.File
	host    string
	network *os.File // lasts, as a pod's does for a while
	gone    chan struct{}
}

const (
	patience = 60 * time.Second // for a server to start
	warm     = 1500 * time.Millisecond
	after    = 500 * time.Millisecond // of load, when the server has gone
	grace    = 75 * time.Second
)

// address returns the address of the old server, 2, or of the other, 1: the two ends of a
// veth.
func (t *trial) address(end int) string {
	return fmt.Sprintf("10.%d.%d.%d", 1+t.number/250, 1+t.number%250, end)
}

// start starts both servers and the client.
func (t *trial) start(ctx context.Context, shared string) (err error) {
	t.dir = filepath.Join(shared, fmt.Sprint(t.number))
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return err
	}
	t.failure, t.at = map[string]error{}, map[string]time.Time{}
	words := append([]string{shared + "/lameduck", "--log-format=json", "--grace-period=60", "--preset=auto"}, strings.Fields(t.Contender)...)
	if t.Contender == sleep {
		words = []string{"tini"}
	}
	const alone = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
	if t.old, err = t.launch(shared, 2, alone|syscall.CLONE_NEWNET, append(words, "--"), t.row.server); err != nil {
		return err
	}
	if t.other, err = t.launch(shared, 1, alone, nil, t.row.other()); err != nil {
		return err
	}
	for _, p := range []*replica{t.other, t.old} {
		if err := p.await(ctx); err != nil {
			return err
		}
	}
	t.aim(t.old)
	if t.client, err = newClient(t.row.client, t.pick, t.dir); err != nil {
		return err
	}
	return t.client.do("first", "1ms")
}

// launch starts a server behind words.
func (t *trial) launch(shared string, end int, namespaces uintptr, words, server []string) (*replica, error) {
	p := &replica{host: t.address(end), dir: filepath.Join(t.dir, fmt.Sprint(end)), gone: make(chan struct{})}
	err := os.Mkdir(p.dir, 0o755)
	if err == nil {
		err = os.Chown(p.dir, nobody, nobody)
	}
	if err == nil {
		p.log, err = os.Create(p.dir + ".log")
	}
	if err != nil {
		return nil, err
	}
	words = append(append([]string{"-ec", read("stage.sh"), "stage"}, words...), "sh", "-ec", script(server[0]), server[0])
	p.cmd = exec.Command("sh", append(words, server[1:]...)...)
	p.cmd.Dir = p.dir
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LAB=" + shared + "/lab", "HOST=" + p.host, "OTHER=" + t.address(1)}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true} // a signal to our group is not theirs
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait()
		close(p.gone)
	}()
	if namespaces&syscall.CLONE_NEWNET == 0 {
		return p, nil
	}
	p.network, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.cmd.Process.Pid))
	if err == nil {
		err = t.connect(p)
	}
	return p, err
}

// connect connects the network of a replica.
func (t *trial) connect(p *replica) error {
	const script = "ip link add $1 type veth peer name eth0 netns $2; ip address add $3/24 dev $1; ip link set $1 up"
	text, err := exec.Command("sh", "-ec", script, "connect", fmt.Sprintf("trial%d", t.number), fmt.Sprint(p.cmd.Process.Pid),
		t.address(1)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cannot connect a network: %w: %s", err, text)
	}
	return nil
}

const nobody = 65534 // as in stage.sh

// await returns when the server accepts, and has removed the file "starting" if it has made
// one.
func (p *replica) await(ctx context.Context) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", p.host+":8080")
		if err == nil {
			conn.Close()
			if _, err := os.Stat(p.dir + "/starting"); err != nil {
				return nil
			}
		}
		select {
		case <-p.gone:
			return fmt.Errorf("the server has exited:\n%s", p.said())
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
	}
	return fmt.Errorf("the server does not accept:\n%s", p.said())
}

func (p *replica) said() string {
	text, _ := os.ReadFile(p.log.Name())
	return string(text)
}

func (p *replica) close() {
	if p != nil {
		p.cmd.Process.Kill()
		<-p.gone
		p.log.Close()
		p.network.Close() // without effect if nil
	}
}

// aim sends new connections to a replica.
func (t *trial) aim(p *replica) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.target = p.host
	os.WriteFile(t.dir+"/next", []byte(p.host), 0o644)
	os.Rename(t.dir+"/next", t.dir+"/target")
}

func (t *trial) pick() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.target + ":8080"
}

// play stops the old server under load.
func (t *trial) play(ctx context.Context) error {
	var all sync.WaitGroup
	for range conns {
		all.Go(func() { t.ask(100 * time.Millisecond) })
	}
	all.Wait()
	loaded, unload := context.WithCancel(ctx)
	defer unload()
	all.Go(func() { t.load(loaded, &all) })
	time.Sleep(warm)
	t.term = time.Now()
	asked := t.count()
	if t.Contender == sleep {
		t.Ended, t.HeldMS = "elapsed", sleepFor.Seconds()*1000
		time.AfterFunc(sleepFor, func() { t.old.cmd.Process.Signal(t.row.signal()) })
	} else {
		t.old.cmd.Process.Signal(syscall.SIGTERM)
	}
	lag := 500*time.Millisecond + rand.N(time.Second)
	removal := time.AfterFunc(lag, func() { t.aim(t.other) })
	defer removal.Stop()
	kill := time.AfterFunc(grace, func() { t.old.cmd.Process.Kill() })
	defer kill.Stop()
	<-t.old.gone
	t.Requests = t.count() - asked
	time.Sleep(after)
	unload()
	all.Wait()
	return cmp.Or(ctx.Err(), t.judge())
}

// load sends requests at random times, of which 12 are under way on average, or 100 a second.
func (t *trial) load(ctx context.Context, all *sync.WaitGroup) {
	think := t.Think
	if t.row.slow() {
		think = think * 19 / 10
	}
	mean := float64(max(think/12, 10*time.Millisecond))
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.ExpFloat64() * mean))
		think := time.Duration((0.5 + rand.Float64()) * float64(t.Think))
		if t.row.slow() && rand.IntN(10) == 0 {
			think *= 10
		}
		all.Go(func() { t.ask(think) })
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
	err := t.client.do(name, fmt.Sprintf("%.1fms", think.Seconds()*1000))
	if err != nil {
		t.mu.Lock()
		t.failure[name], t.at[name] = err, time.Now()
		t.mu.Unlock()
	}
}

var names = regexp.MustCompile(`\bt\d+n\d+\b`)

// judge compares the failures with what the servers have printed.
func (t *trial) judge() error {
	said := t.old.said()
	for line := range strings.Lines(said) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Ended != "" {
			t.report = r
		}
	}
	if t.Ended == "" {
		return errors.New("no report:\n" + said)
	}
	processed := map[string]int{}
	for _, name := range names.FindAllString(said+t.other.said(), -1) {
		processed[name]++
		if processed[name] == 2 {
			t.Twice++
		}
	}
	for name, err := range t.failure {
		at := t.at[name].Sub(t.term).Seconds() * 1000
		t.Lost = append(t.Lost, loss{at, err.Error(), processed[name] > 0, at > t.HeldMS})
		if at < 0 {
			return fmt.Errorf("a request failed before TERM: %w", err)
		}
	}
	if len(processed) < t.asked/2 {
		return fmt.Errorf("%d of %d requests are in the logs:\n%s", len(processed), t.asked, said)
	}
	return nil
}

func (t *trial) close() {
	if t.client != nil {
		t.client.close()
	}
	t.old.close()
	t.other.close()
	os.RemoveAll(t.dir)
}
