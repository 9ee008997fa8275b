package truth

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lameduck-init/lameduck/cmd/lab/internal/must"
	"github.com/lameduck-init/lameduck/cmd/lab/internal/stage"
	"github.com/lameduck-init/lameduck/internal/plays"
)

// trial is one run of a case.
type trial struct {
	c      *plays.Row
	dir    string // for the server's files
	server *stage.Program
	other  *stage.Program // of a row with a lag
	moved  atomic.Bool    // new connections of pools go to the other
	term   time.Time      // when TERM is planned: the zero of all plays.Moments
	sent   time.Time      // when TERM was sent

	clients atomic.Int32
	named   atomic.Int32 // requests with names
	links   sync.Map     // what opens them, by label

	mu   sync.Mutex    // guards the rest
	held []net.Conn    // of all clients
	last time.Duration // when the last answer came
	result
	err error // the first of the script
}

// loss is a request that failed.
type loss struct {
	At    time.Duration // relative to TERM
	Error string
	Name  string `json:"-"`
	Raced bool   // it was on its way when the server closed its connection, which is right in a race
	Begun bool   // by a server
}

// settle is the time between the start of a server and the first moment of a play.
const settle = 300 * ms

// holdPatience is more than the grace period that any case gives.
const holdPatience = 130 * s

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

// names matches the names of requests.
var names = regexp.MustCompile(`\border\d+\b`)

// lose notes a lost request.
func (t *trial) lose(l loss) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.At = time.Since(t.term)
	t.Losses = append(t.Losses, l)
}

// check notes an error that means that the case could not be played.
func (t *trial) check(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = cmp.Or(t.err, err)
}

// play runs the plays and returns when lameduck has exited or was killed.
func (t *trial) play() error {
	defer func() { t.server.Close() }()
	if err := must.Try(t.launch); err != nil {
		return fmt.Errorf("%w\n%s", err, t.server.Said())
	}
	var all sync.WaitGroup
	var scene []*play
	for i := range t.c.Plays {
		p := &play{Play: &t.c.Plays[i]}
		if p.Pool && p.From < 0 && !p.Front { // before the clock starts: connecting may take long
			p.openPool(t, &all)
		}
		scene = append(scene, p)
	}
	all.Wait()
	if t.err != nil {
		return t.err
	}
	t.term = time.Now().Add(t.c.Lead() + settle)
	for _, p := range scene {
		all.Go(func() { p.run(t) })
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
	t.mu.Lock()
	defer t.mu.Unlock()
	return cmp.Or(err, t.err)
}

func (t *trial) terminationLog() string { return t.dir + "/termination-log" }

// terminated returns the report in the termination log, or nil.
func (t *trial) terminated() *stage.Report {
	text, _ := os.ReadFile(t.terminationLog())
	return signalled(string(text))
}

// signalled returns the last report of signals in lameduck's lines, or nil.
func signalled(text string) *stage.Report {
	for _, r := range slices.Backward(stage.Reports(text)) {
		if len(r.Sent) > 0 {
			return &r
		}
	}
	return nil
}

// stop sends TERM and returns when the server has gone. After the signal it gets KILL: a
// graceful one when all has been played, since idle connections may keep it.
func (t *trial) stop(played chan struct{}) error {
	t.sent = time.Now()
	signal := syscall.SIGTERM
	if t.c.Lag > 0 {
		time.AfterFunc(t.c.Lag+rand.N(s)-500*ms, func() { t.check(must.Try(func() { t.aim(clientEnd) })) })
	}
	if t.c.Sleep > 0 {
		t.sleep(t.c.Sleep)
		signal = unix.SignalNum("SIG" + t.c.Stop)
	}
	if err := t.server.Process.Signal(signal); err != nil {
		return err
	}
	limit := time.Now().Add(holdPatience)
	for t.sleep(250*ms) && time.Now().Before(limit) {
		if t.c.Lag > 0 || t.terminated() == nil {
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
	Verdict  plays.Verdict
	Losses   []loss        // of which Lost count as lost for the verdict
	Requests int           // of pools, from TERM on
	Twice    int           // requests that servers have begun twice
	Open     int           // connections that the server has not closed in a race
	Closed   int           // connections that lameduck has closed, or on which it has sent GOAWAY
	CameBack int           // the clients of so many
	Message  string        // lameduck's
	Stalled  time.Duration // the longest time that the machine stood still; see stalls.longest
	Err      string
}

// conclude completes the result of the trial.
func (t *trial) conclude() error {
	text := t.server.Said()
	said := cmp.Or(signalled(text), t.terminated(), &stage.Report{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Closed, t.CameBack, t.Message = said.Closed+said.Goaway, said.CameBack, said.Message
	t.E, t.L = t.c.Window(t.last)
	t.Signal = t.sent.Sub(t.term) + t.c.Sleep
	switch {
	case t.c.Sleep > 0:
	case len(said.Sent) == 0:
		return errors.New("lameduck reports no signal:\n" + text)
	default:
		t.Signal += time.Duration(said.Sent[0].AtMS) * ms
	}
	if err := t.judge(text + t.other.Said()); err != nil {
		return err
	}
	if t.c.Reason != "" && said.Ended != t.c.Reason {
		return fmt.Errorf("the hold ended by %q, want %q: %s", said.Ended, t.c.Reason, said.Message)
	}
	if t.c.Unasked && said.Closed > 0 {
		return fmt.Errorf("%d connections were closed: %s", said.Closed, said.Message)
	}
	return nil
}

// judge compares the losses with what the servers have printed.
func (t *trial) judge(printed string) error {
	begun := map[string]int{}
	for _, name := range names.FindAllString(printed, -1) {
		begun[name]++
		if begun[name] == 2 {
			t.Twice++
		}
	}
	if named := int(t.named.Load()); t.c.Lag > 0 && len(begun) < named/2 {
		return fmt.Errorf("of %d requests the servers have begun %d", named, len(begun))
	}
	for i := range t.Losses {
		l := &t.Losses[i]
		l.Begun = begun[l.Name] > 0 || t.c.Race && !l.Raced
		if !l.Raced {
			t.Lost++
		}
	}
	t.Lost += t.Open
	if t.c.Lag == 0 {
		t.Verdict = t.c.Judge(t.Moments)
	}
	return nil
}
