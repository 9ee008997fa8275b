package truth

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/peers"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"

	"github.com/lameduck-init/lameduck/internal/plays"
)

// trial is one run of a case.
type trial struct {
	c        *plays.Row
	lameduck string
	dir      string // for the server's files
	server   *stage.Program
	term     time.Time // when TERM is planned: the zero of all plays.Moments
	sent     time.Time // when TERM was sent

	mu      sync.Mutex // guards the rest
	clients int
	links   map[string]func() (peers.Link, error) // by label
	held    []net.Conn                            // of all clients
	last    time.Duration                         // when the last answer came
	lost    []string
	err     error // the first of the script
	kept    keptTally
}

// settle is the time between the start of a server and the first moment of a play.
const settle = 300 * ms

// holdPatience is more than the grace period that any case gives.
const holdPatience = 130 * s

func newTrial(c *plays.Row) *trial {
	return &trial{c: c, links: map[string]func() (peers.Link, error){}}
}

// wait returns at a moment relative to TERM, or returns false when the server has gone.
func (t *trial) wait(moment time.Duration) bool {
	return t.sleep(time.Until(t.term.Add(moment)))
}

// sleep returns after d, or returns false when the server has gone.
func (t *trial) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.server.Gone:
		return false
	}
}

// answered notes a moment that the hold should wait for.
func (t *trial) answered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = max(t.last, time.Since(t.term))
}

// lose notes a lost request.
func (t *trial) lose(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = append(t.lost, fmt.Sprintf("%s: %v", seconds(time.Since(t.term)), err))
}

// check notes an error that means that the case could not be played.
func (t *trial) check(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
}

// spare notes the error of a request that does not count, unless the server goes: such a
// request may be cut, but must not fail before.
func (t *trial) spare(err error) {
	if t.sleep(3 * s) {
		t.check(fmt.Errorf("a request failed while the server ran: %w", err))
	}
}

// play runs the plays and returns when lameduck has exited or was killed.
func (t *trial) play() error {
	defer func() { t.server.Close() }()
	if err := must.Try(t.start); err != nil {
		return fmt.Errorf("%w\n%s", err, t.server.Said())
	}
	t.term = time.Now().Add(t.c.Lead() + settle)
	var all sync.WaitGroup
	for i := range t.c.Plays {
		all.Go(func() { (&play{&t.c.Plays[i]}).run(t) })
	}
	played := make(chan struct{})
	go func() {
		all.Wait()
		close(played)
	}()
	if !t.sleep(time.Until(t.term)) {
		return fmt.Errorf("the server exited before TERM:\n%s", t.server.Said())
	}
	err := t.stop(played)
	select {
	case <-played:
	case <-time.After(5 * s): // some steps may wait for answers forever
	}
	if t.c.Race {
		t.judgeRace()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(err, t.err)
}

// start starts the upstream and the server.
func (t *trial) start() {
	peers.WriteCertificate(t.dir)
	must.Do(os.WriteFile(t.terminationLog(), nil, 0o644))
	words := []string{t.lameduck, "--log-format=json", "--termination-log=" + t.terminationLog()}
	t.launch(slices.Concat(words, t.c.Arguments(), []string{"--", "sh", "-ec", peers.Script(t.c.Server[0])}, t.c.Server))
}

func (t *trial) terminationLog() string { return t.dir + "/termination-log" }

// terminated returns the report in the termination log, or nil.
func (t *trial) terminated() *stage.Report {
	text, _ := os.ReadFile(t.terminationLog())
	return signalled(string(text))
}

// signalled returns the report of the first signal in lameduck's lines, or nil.
func signalled(text string) *stage.Report {
	if r := stage.LastReport(stage.Reports(text)); r != nil && len(r.Sent) > 0 {
		return r
	}
	return nil
}

// stop sends TERM and returns when the server has gone. After the signal it gets KILL: a
// graceful one when all has been played, since idle connections may keep it.
func (t *trial) stop(played chan struct{}) error {
	t.sent = time.Now()
	if err := t.server.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	limit := time.Now().Add(holdPatience)
	for t.sleep(250*ms) && time.Now().Before(limit) {
		if t.terminated() == nil {
			continue
		}
		if t.c.Graceful {
			select {
			case <-played:
			default:
				continue
			}
		}
		t.sleep(500 * ms)
		break
	}
	t.server.Process.Kill()
	<-t.server.Gone
	return nil
}

// result is the output of a trial for the table.
type result struct {
	plays.Moments
	Verdict   plays.Verdict
	FirstLost string        // a moment and an error
	Message   string        // lameduck's
	Stalled   time.Duration // the longest time that the machine stood still; see stalls.longest
	Err       string
	Kept      keptTally
}

// result returns the findings of the trial.
func (t *trial) result() *result {
	said := cmp.Or(signalled(t.server.Said()), t.terminated())
	if said == nil {
		return &result{Err: "lameduck reports no signal:\n" + t.server.Said()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &result{Message: said.Message, Kept: t.kept}
	r.E, r.L = t.c.Window(t.last)
	r.Signal = t.sent.Sub(t.term) + time.Duration(said.Sent[0].AtMS)*ms
	r.Lost = len(t.lost)
	r.Verdict = t.c.Judge(r.Moments)
	if len(t.lost) > 0 {
		r.FirstLost = t.lost[0]
	}
	if t.c.Reason != "" && said.Ended != t.c.Reason {
		r.Err = fmt.Sprintf("the hold ended by %q, want %q: %s", said.Ended, t.c.Reason, said.Message)
	}
	if t.c.Unasked && said.Closed > 0 {
		r.Err = fmt.Sprintf("%d connections were closed: %s", said.Closed, said.Message)
	}
	return r
}
